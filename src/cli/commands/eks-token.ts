import { eksExecPlugin } from '../../aws/index.ts'
import { UsageError } from '../../main/flags.ts'
import { regionFlag, withAws } from '../aws/session.ts'
import { defineCommand } from '../command.ts'

export default defineCommand({
  text: 'Prints a token for an EKS cluster, as an exec plug-in of a kubeconfig does: what aws eks get-token is for, without the AWS CLI. Credentials come from where AWS’s own tools take them.',
  flags: {
    'cluster-name': { help: 'The EKS cluster', default: '', value: 'NAME', aliases: ['cluster-id', 'cluster'] },
    'role-arn': { help: 'A role to assume first', default: '', value: 'ARN', aliases: ['role'] },
    ...regionFlag,
  },
  examples: [
    'eks-token --cluster-name hub --region us-west-2',
    'eks-token --cluster-name hub --role-arn arn:aws:iam::111111111111:role/admin',
  ],
  run: (cli) => {
    const { 'cluster-name': clusterName, 'role-arn': roleArn, region } = cli.flags
    if (!clusterName) throw new UsageError('--cluster-name is missing: the name of the EKS cluster')
    return withAws(cli, async ({ aws }) => {
      const { env } = cli
      cli.out.line(
        await eksExecPlugin({ aws, env, clusterName, region: region || undefined, roleArn: roleArn || undefined }),
      )
    })
  },
})
