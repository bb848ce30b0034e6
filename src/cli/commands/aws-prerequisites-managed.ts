import { managedPrerequisite } from '../../aws/index.ts'
import { clusterOf, prerequisite, prerequisiteFlags } from '../aws/prerequisites.ts'
import { defineCommand } from '../command.ts'

export default defineCommand({
  text: 'Prints the role that a cluster on EKS needs in its own account before it joins a hub on EKS: its agent takes it on, and with it the role on the hub.',
  flags: {
    'hub-cluster-arn': { help: 'The hub', default: '', value: 'ARN', aliases: ['eks-hub-cluster-arn'] },
    'managed-cluster-arn': { help: 'The cluster that is to join', default: '', value: 'ARN' },
    klusterlet: { help: 'The name of its Klusterlet', default: 'klusterlet', value: 'NAME' },
    ...prerequisiteFlags,
  },
  examples: [
    'aws prerequisites managed --hub-cluster-arn arn:aws:eks:us-west-2:111111111111:cluster/hub --managed-cluster-arn arn:aws:eks:eu-west-1:222222222222:cluster/c1 -o commands',
  ],
  run: async (cli) => {
    const hub = clusterOf('--hub-cluster-arn', cli.flags['hub-cluster-arn'])
    const managed = clusterOf('--managed-cluster-arn', cli.flags['managed-cluster-arn'])
    const { klusterlet } = cli.flags
    return prerequisite(cli, managed, (oidcProvider) =>
      managedPrerequisite({ hub, managed }, { oidcProvider, klusterlet }),
    )
  },
})
