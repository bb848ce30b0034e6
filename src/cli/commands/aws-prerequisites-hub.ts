import { hubPrerequisite } from '../../aws/index.ts'
import { clusterOf, prerequisite, prerequisiteFlags } from '../aws/prerequisites.ts'
import { defineCommand } from '../command.ts'

export default defineCommand({
  text: 'Prints the role that a hub on EKS needs, when it is to approve clusters by itself: the role with which it makes the IAM objects of managed clusters. Hubs where people accept clusters need none.',
  flags: {
    'hub-cluster-arn': { help: 'The hub', default: '', value: 'ARN', aliases: ['eks-hub-cluster-arn'] },
    'access-entries': { help: 'The hub keeps access in EKS access entries, not in aws-auth', default: false },
    'resource-tags': { help: 'The hub is told to tag what it makes (init --aws-resource-tags)', default: false },
    ...prerequisiteFlags,
  },
  examples: [
    'aws prerequisites hub --hub-cluster-arn arn:aws:eks:us-west-2:111111111111:cluster/hub -o terraform',
    'aws prerequisites hub --hub-cluster-arn arn:aws:eks:us-west-2:111111111111:cluster/hub --verify',
  ],
  run: async (cli) => {
    const hub = clusterOf('--hub-cluster-arn', cli.flags['hub-cluster-arn'])
    const { 'access-entries': accessEntries, 'resource-tags': tags } = cli.flags
    return prerequisite(cli, hub, (oidcProvider) => hubPrerequisite(hub, { oidcProvider, accessEntries, tags }))
  },
})
