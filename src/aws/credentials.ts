/** What AWS is called with. */
export interface Credentials {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string | undefined
  /** Milliseconds since 1970. Keys that never expire have none. */
  expiration?: number | undefined
  /** Twelve digits, where whoever issued the credentials said so. */
  accountId?: string | undefined
  /** Who these are, where whoever issued them said so: `arn:aws:sts::…:assumed-role/…`. */
  arn?: string | undefined
  /** The unique id of the same: `AROA…:session`. */
  userId?: string | undefined
}

/** Gives credentials that are good now. It is asked before each use, and may ask others in turn. */
export type CredentialSource = (signal?: AbortSignal) => Promise<Credentials>
