import type { Tree } from './command.ts'

/** Every command with one line about it. A command's own file is loaded when it is called or explained. */
export const tree: Tree = {
  init: {
    group: 'Registration',
    about: 'Make a cluster a hub',
    load: async () => (await import('./commands/init.ts')).default,
  },
  join: {
    group: 'Registration',
    about: 'Ask a hub to manage a cluster',
    load: async () => (await import('./commands/join.ts')).default,
  },
  accept: {
    group: 'Registration',
    about: 'Let clusters in that asked to join',
    load: async () => (await import('./commands/accept.ts')).default,
  },
  unjoin: {
    group: 'Registration',
    about: 'Take a cluster away from its hub',
    load: async () => (await import('./commands/unjoin.ts')).default,
  },
  clean: {
    group: 'Registration',
    about: 'Remove everything that init installed',
    load: async () => (await import('./commands/clean.ts')).default,
  },
  upgrade: {
    group: 'Registration',
    about: 'Move the hub or an agent to another version',
    commands: {
      clustermanager: {
        about: 'Upgrade the hub',
        aliases: ['hub'],
        load: async () => (await import('./commands/upgrade-clustermanager.ts')).default,
      },
      klusterlet: {
        about: 'Upgrade the agent of a managed cluster',
        aliases: ['agent'],
        load: async () => (await import('./commands/upgrade-klusterlet.ts')).default,
      },
    },
  },
  get: {
    group: 'Fleet',
    about: 'Show clusters, works, add-ons, sets, tokens and installations',
    commands: {
      token: {
        about: 'Get a token and the command with which a cluster joins',
        load: async () => (await import('./commands/get-token.ts')).default,
      },
      clusters: {
        about: 'The clusters of this hub',
        aliases: ['cluster', 'managedclusters', 'managedcluster'],
        load: async () => (await import('./commands/get-clusters.ts')).default,
      },
      works: {
        about: 'The ManifestWorks of clusters',
        aliases: ['work', 'manifestworks', 'manifestwork'],
        load: async () => (await import('./commands/get-works.ts')).default,
      },
      addons: {
        about: 'Add-ons, and where they are enabled',
        aliases: ['addon'],
        load: async () => (await import('./commands/get-addons.ts')).default,
      },
      clustersets: {
        about: 'The cluster sets, their clusters and the namespaces that may use them',
        aliases: ['clusterset'],
        load: async () => (await import('./commands/get-clustersets.ts')).default,
      },
      'hub-info': {
        about: 'What is installed on the hub',
        load: async () => (await import('./commands/get-hub-info.ts')).default,
      },
      'klusterlet-info': {
        about: 'What is installed on a managed cluster',
        load: async () => (await import('./commands/get-klusterlet-info.ts')).default,
      },
    },
  },
  create: {
    group: 'Fleet',
    about: 'Create works and cluster sets',
    commands: {
      work: {
        about: 'Send manifests to clusters',
        load: async () => (await import('./commands/create-work.ts')).default,
      },
      clusterset: {
        about: 'Create a cluster set',
        load: async () => (await import('./commands/create-clusterset.ts')).default,
      },
    },
  },
  delete: {
    group: 'Fleet',
    about: 'Delete works, cluster sets and bootstrap tokens',
    commands: {
      work: {
        about: 'Take a work away from clusters',
        load: async () => (await import('./commands/delete-work.ts')).default,
      },
      clusterset: {
        about: 'Delete a cluster set',
        load: async () => (await import('./commands/delete-clusterset.ts')).default,
      },
      token: {
        about: 'End all bootstrap tokens: nobody new can ask to join',
        load: async () => (await import('./commands/delete-token.ts')).default,
      },
    },
  },
  clusterset: {
    group: 'Fleet',
    about: 'Put clusters into sets, and let namespaces use them',
    commands: {
      set: {
        about: 'Put clusters into a set, or give it managed namespaces',
        load: async () => (await import('./commands/clusterset-set.ts')).default,
      },
      bind: {
        about: 'Let a namespace use a set',
        load: async () => (await import('./commands/clusterset-bind.ts')).default,
      },
      unbind: {
        about: 'No longer let a namespace use a set',
        load: async () => (await import('./commands/clusterset-unbind.ts')).default,
      },
    },
  },
  addon: {
    group: 'Fleet',
    about: 'Make add-ons, and enable and disable them on clusters',
    commands: {
      create: {
        about: 'Make an add-on out of manifests',
        load: async () => (await import('./commands/addon-create.ts')).default,
      },
      enable: {
        about: 'Enable add-ons on clusters',
        load: async () => (await import('./commands/addon-enable.ts')).default,
      },
      disable: {
        about: 'Disable add-ons on clusters',
        load: async () => (await import('./commands/addon-disable.ts')).default,
      },
    },
  },
  move: {
    group: 'Fleet',
    about: 'Move the clusters of a namespace to another management cluster',
    load: async () => (await import('./commands/move.ts')).default,
  },
  access: {
    group: 'Access',
    about: 'See who may do what on the clusters, and approve permissions',
    commands: {
      'who-can': {
        about: 'Who may do something, on which clusters, through which permission',
        load: async () => (await import('./commands/access-who-can.ts')).default,
      },
      of: {
        about: 'What somebody may do on the clusters',
        load: async () => (await import('./commands/access-of.ts')).default,
      },
      list: {
        about: 'Everything that this hub has granted',
        load: async () => (await import('./commands/access-list.ts')).default,
      },
      diff: {
        about: 'What is granted on one cluster and not on another, or now and not before',
        load: async () => (await import('./commands/access-diff.ts')).default,
      },
      approve: {
        about: 'Approve a permission whose author may not give what it gives',
        load: async () => (await import('./commands/access-approve.ts')).default,
      },
    },
  },
  describe: {
    group: 'Fleet',
    about: 'Show all about one thing',
    commands: {
      cluster: {
        about: 'One cluster on one page: identity, credentials, add-ons, works, permissions',
        aliases: ['managedcluster'],
        load: async () => (await import('./commands/describe-cluster.ts')).default,
      },
    },
  },
  doctor: {
    group: 'Fleet',
    about: 'Find out why a cluster does not join, and what to do about it',
    load: async () => (await import('./commands/doctor.ts')).default,
  },
  aws: {
    group: 'Access',
    about: 'AWS identities of clusters, and what clusters on EKS need in IAM',
    commands: {
      identities: {
        about: 'The identities, what they stand on, and who may use them',
        load: async () => (await import('./commands/aws-identities.ts')).default,
      },
      whoami: {
        about: 'Who acts in AWS for a cluster',
        load: async () => (await import('./commands/aws-whoami.ts')).default,
      },
      explain: {
        about: 'Which link of a cluster’s identity fails, and what to change',
        load: async () => (await import('./commands/aws-explain.ts')).default,
      },
      'trust-policy': {
        about: 'The trust policy that the role of an identity needs',
        load: async () => (await import('./commands/aws-trust-policy.ts')).default,
      },
      prerequisites: {
        about: 'The IAM roles that clusters on EKS need first',
        commands: {
          hub: {
            about: 'What a hub needs that approves clusters by itself',
            load: async () => (await import('./commands/aws-prerequisites-hub.ts')).default,
          },
          managed: {
            about: 'What a cluster needs before it joins',
            load: async () => (await import('./commands/aws-prerequisites-managed.ts')).default,
          },
        },
      },
    },
  },
  token: {
    group: 'Access',
    about: 'Print the token of a ManagedServiceAccount, for kubeconfigs',
    load: async () => (await import('./commands/token.ts')).default,
  },
  kubeconfig: {
    group: 'Access',
    about: 'Get a kubeconfig for a managed cluster',
    load: async () => (await import('./commands/kubeconfig.ts')).default,
  },
  'eks-token': {
    group: 'Access',
    about: 'Print a token for an EKS cluster, for kubeconfigs',
    load: async () => (await import('./commands/eks-token.ts')).default,
  },
  hub: { group: 'Programs', about: 'Run the hub', load: async () => (await import('./commands/programs.ts')).hub },
  agent: {
    group: 'Programs',
    about: 'Run the agent of a managed cluster',
    load: async () => (await import('./commands/programs.ts')).agent,
  },
  operator: {
    group: 'Programs',
    about: 'Run the operator of a hub or of a managed cluster',
    load: async () => (await import('./commands/programs.ts')).operator,
  },
  'service-accounts-agent': {
    group: 'Programs',
    about: 'Run the agent of add-on managed-serviceaccount',
    load: async () => (await import('./commands/programs.ts')).serviceAccountsAgent,
  },
  leave: {
    group: 'Programs',
    about: 'Take a cluster away from its hub, after its agent has stopped',
    load: async () => (await import('./commands/programs.ts')).leave,
  },
  'cleanup-unjoined': {
    group: 'Programs',
    about: 'Delete the ManagedClusters of clusters that have left',
    load: async () => (await import('./commands/programs.ts')).cleanupUnjoined,
  },
  version: {
    group: 'Other',
    about: 'Print the version',
    load: async () => (await import('./commands/version.ts')).default,
  },
  completion: {
    group: 'Other',
    about: 'Print a script that completes commands in bash, zsh or fish',
    load: async () => (await import('./commands/completion.ts')).default,
  },
  help: {
    group: 'Other',
    about: 'Explain a command',
    load: async () => (await import('./commands/help.ts')).default,
  },
  __complete: {
    hidden: true,
    about: 'What could come next, for shells',
    load: async () => (await import('./commands/complete.ts')).default,
  },
}
