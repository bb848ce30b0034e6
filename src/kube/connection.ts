/** What proves who we are, right now. The same object is returned while nothing changed, so that connections can be kept. */
export interface Credential {
  /** PEM; absent: the system's roots. */
  readonly ca?: string | undefined
  /** PEM, leaf first; always together with `key`. */
  readonly cert?: string | undefined
  /** PEM. */
  readonly key?: string | undefined
  readonly token?: string | undefined
  readonly basic?: { username: string; password: string } | undefined
}

/** Gives the current credential. `rejected` is one that the server answered 401 to: if it is still the current one, a new one is fetched. */
export type CredentialSource = (options?: {
  rejected?: Credential | undefined
  signal?: AbortSignal | undefined
}) => Promise<Credential>

/** Whom to act as; the server checks that our own identity may `impersonate` each part. */
export interface Impersonation {
  user: string
  uid?: string | undefined
  groups?: string[] | undefined
  extra?: Record<string, string[]> | undefined
}

/** How to reach one API server as one identity. */
export interface Connection {
  /** For messages: `context "dev" of ~/.kube/config`, `in-cluster`. */
  readonly source: string
  /** `https://host:port`, or with a path prefix; never ends in a slash. */
  readonly server: string
  /** The context's namespace. */
  readonly namespace?: string | undefined
  /** The name to ask for in SNI and to look for in the server's certificate, where it is not the host of `server`. */
  readonly tlsServerName?: string | undefined
  readonly insecureSkipTlsVerify?: boolean | undefined
  /** http, https or socks5; from the kubeconfig's `proxy-url`, else from HTTPS_PROXY and NO_PROXY. */
  readonly proxyUrl?: string | undefined
  readonly disableCompression?: boolean | undefined
  readonly impersonate?: Impersonation | undefined
  readonly credentials: CredentialSource
}
