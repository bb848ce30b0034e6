import { ClusterRole, ClusterRoleBinding, Role, RoleBinding, type Client, type PolicyRule } from '../src/kube/index.ts'

const apiGroup = 'rbac.authorization.k8s.io'
let grants = 0

/** Gives a user rules on a cluster: everywhere, or in one namespace. */
export const allow = async (
  admin: Client,
  user: string,
  rules: PolicyRule[],
  { namespace }: { namespace?: string } = {},
): Promise<void> => {
  const name = `allow-${user.replaceAll(/[^a-z0-9]/g, '-')}-${++grants}`
  const subjects = [{ apiGroup, kind: 'User', name: user }]
  if (namespace) {
    await admin.of(Role).create({ metadata: { name, namespace }, rules })
    await admin.of(RoleBinding).create({
      metadata: { name, namespace },
      roleRef: { apiGroup, kind: 'Role', name },
      subjects,
    })
    return
  }
  await admin.of(ClusterRole).create({ metadata: { name }, rules })
  await admin.of(ClusterRoleBinding).create({
    metadata: { name },
    roleRef: { apiGroup, kind: 'ClusterRole', name },
    subjects,
  })
}

/** One rule: `rule('get,list', 'pods')`, `rule('update', 'deployments.apps')`, `rule('get', 'secrets', ['one'])`. */
export const rule = (verbs: string, resource: string, resourceNames?: string[]): PolicyRule => {
  const [plural = '', ...group] = resource.split('.')
  return {
    verbs: verbs.split(','),
    apiGroups: [group.join('.')],
    resources: [plural],
    ...(resourceNames ? { resourceNames } : {}),
  }
}
