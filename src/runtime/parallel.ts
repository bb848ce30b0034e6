/** Runs all tasks, at most `limit` at a time. All of them run even if some fail; then the first error is thrown, with the number of others. */
export const inParallel = async (limit: number, tasks: readonly (() => Promise<void>)[]): Promise<void> => {
  const errors: unknown[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < tasks.length) {
      const task = tasks[next++]!
      await task().catch((error: unknown) => errors.push(error))
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, tasks.length) }, worker))
  if (errors.length === 1) throw errors[0]
  if (errors.length > 1) throw new AggregateError(errors, errors.map((e) => (e as Error).message).join('; '))
}
