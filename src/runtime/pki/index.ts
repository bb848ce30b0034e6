/** Certificates with node:crypto alone: an authority of one's own, what it issues, and requests to other authorities. */
export { createAuthority, issue, type Issue, type KeyPair, type Usage } from './certificate.ts'
export { newKey } from './keys.ts'
export type { Places, Subject } from './names.ts'
export { readChain, validityOf, type ReadCertificate } from './read-certificate.ts'
export type { ReadSubject } from './read-name.ts'
export { readRequest, RequestError, type ReadRequest, type RequestFault } from './read-request.ts'
export { createRequest, type RequestOptions } from './request.ts'
export { excessive, readSafely, requested, shown, unsound, type RequestState } from './request-rules.ts'
