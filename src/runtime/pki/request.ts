import { createPrivateKey, createPublicKey } from 'node:crypto'
import { integer, oid, sequence, set, tagged } from './der.ts'
import { placesExtension } from './extension.ts'
import { keyInfo, newKey, pem, signed } from './keys.ts'
import { distinguishedName, type Places, type Subject } from './names.ts'

/** What `createRequest` asks for; `key` is a private key in PEM to ask again with, else a new one is made. */
export interface RequestOptions extends Subject, Places {
  key?: string | undefined
}

const extensionRequest = '1.2.840.113549.1.9.14'

/** A PKCS #10 certificate signing request and the private key it was signed with, both PEM. */
export const createRequest = (options: RequestOptions): { csr: string; key: string } => {
  const key = options.key ?? newKey()
  const signer = createPrivateKey(key)
  const extensions = placesExtension(options)
  const attributes = extensions.length ? [sequence(oid(extensionRequest), set(sequence(...extensions)))] : []
  const part = sequence(
    integer(0), // version 1
    distinguishedName(options),
    keyInfo(createPublicKey(signer)),
    tagged(0, ...attributes),
  )
  return { csr: pem('CERTIFICATE REQUEST', signed(part, signer)), key }
}
