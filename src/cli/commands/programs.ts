import type { Command } from '../command.ts'

const program = (text: string, run: (args: readonly string[], env: NodeJS.ProcessEnv) => Promise<number>) => {
  const command: Command = { text, flags: {}, ownFlags: true, run: ({ raw, env }) => run(raw, env) }
  return { command }
}

/** The long-running programs. They read their own flags, and answer signals themselves. */
export const hub = program('Runs the hub.', async (args, env) => (await import('../../main/hub.ts')).hub(args, env))
export const agent = program('Runs the agent of a managed cluster.', async (args, env) =>
  (await import('../../main/agent.ts')).agent(args, env),
)
export const operator = program('Runs a hub or the agents of a managed cluster.', async (args, env) =>
  (await import('../../main/operator.ts')).operator(args, env),
)
export const leave = program('Takes a cluster away from its hub.', async (args, env) =>
  (await import('../../main/leave.ts')).leave(args, env),
)
export const cleanupUnjoined = program('Deletes the ManagedClusters of clusters that have left.', async (args, env) =>
  (await import('../../main/cleanup-unjoined.ts')).cleanupUnjoined(args, env),
)
export const serviceAccountsAgent = program('Keeps the service accounts of a managed cluster.', async (args, env) =>
  (await import('../../main/service-accounts-agent.ts')).serviceAccountsAgent(args, env),
)
