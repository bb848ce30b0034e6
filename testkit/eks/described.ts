import type { ControlPlane } from '../control-plane.ts'
import type { AuthenticationMode } from './token-review.ts'

/** What EKS says of a cluster that the local AWS cannot know. */
export interface Facts {
  /** Its API server. */
  plane?: Pick<ControlPlane, 'server' | 'ca'> | undefined
  mode?: AuthenticationMode | undefined
}

interface Description {
  cluster?: {
    arn: string
    endpoint?: string
    certificateAuthority?: { data: string }
    accessConfig?: { authenticationMode: string }
  }
}

/** The answer to DescribeCluster as EKS would give it, by the ARN of the cluster; any other answer is left as it is. */
export const described = (
  { method, url }: { method?: string | undefined; url?: string | undefined },
  answer: Buffer,
  facts: ReadonlyMap<string, Facts>,
): Buffer => {
  if (method !== 'GET' || !/^\/clusters\/[^/?]+$/.test(url ?? '')) return answer
  const { cluster, ...rest } = JSON.parse(answer.toString()) as Description
  const known = cluster && facts.get(cluster.arn)
  if (!known) return answer
  const { plane, mode } = known
  const more: Partial<NonNullable<Description['cluster']>> = {
    ...(plane && {
      endpoint: plane.server,
      certificateAuthority: { data: Buffer.from(plane.ca).toString('base64') },
    }),
    ...(mode && { accessConfig: { ...cluster.accessConfig, authenticationMode: mode } }),
  }
  return Buffer.from(JSON.stringify({ ...rest, cluster: { ...cluster, ...more } }))
}
