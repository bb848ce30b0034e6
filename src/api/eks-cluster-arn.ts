import { string } from './schema.ts'

/** The ARN of an EKS cluster, in any partition. */
export const eksClusterArn = (description: string) =>
  string(description, {
    maxLength: 256,
    pattern: '^arn:aws[a-z-]*:eks:[a-z0-9-]+:[0-9]{12}:cluster/[a-zA-Z0-9][a-zA-Z0-9_-]{0,99}$',
  })
