import type { AWSClusterRoleIdentity, AWSClusterStaticIdentity, AWSServiceAccountIdentity } from '../api/index.ts'
import { durationLimit, type ObjectReference, type Recipe } from '../aws/index.ts'
import { assumeRole, assumeRoleWithToken } from './assume-role.ts'
import { judgeLink, type Refusal } from './chain-checks.ts'
import {
  controllerReference,
  describeReference,
  identityKey,
  longestChain,
  type Identity,
  type IdentityReference,
} from './contract.ts'
import type { NamespaceFacts } from './permission.ts'

/** Where identities and namespaces are looked up: informers, or lists that a command has fetched. */
export interface Directory {
  /** By the key of `identityKey`. */
  identity(key: string): Identity | undefined
  namespace(name: string): NamespaceFacts | undefined
  /** Where the controller lives: plain secret names are looked for there. */
  controllerNamespace: string
}

/** Who asks, and where it wants to act. */
export interface Asked {
  reference: IdentityReference
  /** Of the cluster; every link must allow it. */
  namespace: string
  region: string
  partition?: string | undefined
  /** The cluster has used this identity before: it keeps it until the identity is gone. */
  established?: boolean | undefined
}

/** One identity of a chain and what is to be said about it. */
export interface Link {
  reference: IdentityReference
  identity?: Identity | undefined
  refusal?: Refusal | undefined
  /** What works, and yet differs from what is written. */
  notes: string[]
}

/** The way from a cluster's identity back to where its credentials begin. The first link is the cluster's own. */
export interface Chain {
  links: Link[]
  /** Of the first link that is refused. */
  refusal?: Refusal | undefined
  /** Absent when the chain is refused. */
  recipe?: Recipe | undefined
  /** `AWSClusterRoleIdentity a ← AWSClusterStaticIdentity b`. */
  path: string
}

/**
 * Walks from a cluster's identity to its source, and judges every link. It goes on after a refusal as far as there is something to
 * walk, so that whoever asks why sees all that is wrong at once. Nothing is read but the directory: no Secret, no AWS.
 */
export const walkChain = (directory: Directory, asked: Asked): Chain => {
  const links: Link[] = []
  const seen = new Set<string>()
  let reference: IdentityReference | undefined = asked.reference
  while (reference) {
    const key = identityKey(reference, asked.namespace)
    const identity: Identity | undefined = directory.identity(key)
    const state = { asked, reference, identity, index: links.length, looped: seen.has(key), before: pathOf(links) }
    const refusal = judgeLink({ ...state, directory })
    links.push({ reference, identity, refusal, notes: [] })
    if (seen.has(key) || links.length > longestChain) break
    seen.add(key)
    reference = identity && sourceOf(reference, identity)
  }
  const refusal = links.find((link) => link.refusal)?.refusal
  const path = pathOf(links)
  return refusal ? { links, refusal, path } : { links, path, recipe: recipeOf(directory, asked, links) }
}

/** What an identity stands on; a role that names nobody is assumed by the controller itself, whose permission is then asked for. */
export const sourceOf = (reference: IdentityReference, identity: Identity): IdentityReference | undefined =>
  reference.kind === 'AWSClusterRoleIdentity'
    ? ((identity as AWSClusterRoleIdentity).spec?.sourceIdentityRef ?? controllerReference)
    : undefined

/** The Secret of a static identity; a plain name is one in the namespace of the controller. */
export const secretOf = (identity: AWSClusterStaticIdentity, controllerNamespace: string): ObjectReference => {
  const { secretRef } = identity.spec
  return typeof secretRef === 'string'
    ? { namespace: controllerNamespace, name: secretRef }
    : { namespace: secretRef.namespace, name: secretRef.name }
}

const pathOf = (links: readonly Link[]): string =>
  links.map(({ reference }) => describeReference(reference)).join(' ← ')

const recipeOf = (directory: Directory, asked: Asked, links: readonly Link[]): Recipe => {
  const { region } = asked
  return links.reduceRight<Recipe | undefined>((source, link) => {
    switch (link.reference.kind) {
      case 'AWSClusterRoleIdentity': {
        const role = assumeRole(link.identity as AWSClusterRoleIdentity, region)
        const recipe: Recipe = { kind: 'role', source: source!, role }
        const limit = durationLimit(recipe)
        if (limit) link.notes.push(limit)
        return recipe
      }
      case 'AWSServiceAccountIdentity':
        return serviceAccountRecipe(link.identity as AWSServiceAccountIdentity, region)
      case 'AWSClusterStaticIdentity':
        return {
          kind: 'static',
          secret: secretOf(link.identity as AWSClusterStaticIdentity, directory.controllerNamespace),
        }
      default:
        return { kind: 'controller' }
    }
  }, undefined)!
}

/** The audience that AWS expects; an empty list would ask for a token that is good for the Kubernetes API itself. */
export const defaultAudiences = ['sts.amazonaws.com']

const serviceAccountRecipe = (identity: AWSServiceAccountIdentity, region: string): Recipe => {
  const { metadata, spec } = identity
  return {
    kind: 'serviceAccount',
    role: assumeRoleWithToken(identity, region),
    account: { namespace: metadata.namespace!, name: metadata.name! },
    audiences: spec.audiences?.length ? spec.audiences : defaultAudiences,
    expirationSeconds: spec.expirationSeconds ?? 86_400,
  }
}
