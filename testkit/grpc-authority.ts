import { createAuthority, issue, type KeyPair } from '../src/runtime/pki/index.ts'

const day = 24 * 3_600_000

/** An authority for a gRPC endpoint on 127.0.0.1 and its clients. */
export const grpcAuthority = (now = Date.now()) => {
  const authority = createAuthority({ commonName: 'grpc', now: new Date(now - day), validForMs: 30 * day })
  const from = (notBefore: number, notAfter: number) => ({
    notBefore: new Date(notBefore),
    notAfter: new Date(notAfter),
  })
  return {
    ca: authority.cert,
    serving: (): KeyPair =>
      issue(authority, {
        commonName: 'endpoint',
        ipAddresses: ['127.0.0.1'],
        usages: ['server'],
        ...from(now - 3_600_000, now + day),
      }),
    client: (
      { user, groups = [] }: { user: string; groups?: readonly string[] },
      { notBefore = now - 3_600_000, notAfter = now + day } = {},
    ): KeyPair =>
      issue(authority, { commonName: user, organizations: groups, usages: ['client'], ...from(notBefore, notAfter) }),
  }
}
