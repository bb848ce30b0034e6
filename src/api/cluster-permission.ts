import { conditions } from './conditions.ts'
import { ageColumn, conditionColumn, defineKind, type ObjectOf } from './kind.ts'
import { labelSelector } from './label-selector.ts'
import { conditionType, group } from './names.ts'
import { array, boolean, object, string, time } from './schema.ts'

const strings = (description: string) => array(description, string())

const rules = array(
  'What is allowed.',
  object('One permission.', {
    verbs: strings('What may be done; "*" is everything.'),
    'apiGroups?': strings('API groups; "" is the core group, "*" is all.'),
    'resources?': strings('Resources; "*" is all.'),
    'resourceNames?': strings('Names of objects; all if empty.'),
    'nonResourceURLs?': strings('Paths outside the API; in a clusterRole only.'),
  }),
)

const subject = object('Who.', {
  'apiGroup?': string('API group of the kind.', { maxLength: 253 }),
  kind: string('User, Group, ServiceAccount or ManagedServiceAccount.', { minLength: 1, maxLength: 63 }),
  name: string('Name of the subject.', { minLength: 1, maxLength: 1024 }),
  'namespace?': string('Namespace of a ServiceAccount.', { maxLength: 63 }),
})

const subjects = {
  'subject?': subject,
  'subjects?': array('Several subjects; subject is then not looked at.', subject),
}

const hasSubject = {
  rule: 'has(self.subject) || has(self.subjects)',
  message: 'name who it is for: set subject or subjects',
}

const place = {
  'namespace?': string('One namespace of the managed cluster.', { maxLength: 63 }),
  'namespaceSelector?': labelSelector('All namespaces of the managed cluster with these labels, also later ones.'),
}

const onePlace = {
  rule: 'has(self.namespace) != has(self.namespaceSelector)',
  message: 'say where: set either namespace or namespaceSelector',
}

const clusterRoleBinding = (description: string) =>
  object(
    description,
    {
      'name?': string('Name of the binding; that of the ClusterPermission if absent.', { maxLength: 253 }),
      ...subjects,
      'roleRef?': object('A ClusterRole that the managed cluster has; clusterRole above if absent.', {
        apiGroup: string('rbac.authorization.k8s.io.', { maxLength: 253 }),
        kind: string('What is bound.', { enum: ['ClusterRole'] }),
        name: string('Its name.', { minLength: 1, maxLength: 253 }),
      }),
    },
    { rules: [hasSubject] },
  )

const role = object('A Role, wherever its namespaces are.', { ...place, rules }, { rules: [onePlace] })

const roleBinding = object(
  'A RoleBinding, wherever its namespaces are.',
  {
    'name?': string('Name of the binding; that of the ClusterPermission if absent.', { maxLength: 253 }),
    ...place,
    ...subjects,
    roleRef: object('What is bound.', {
      'apiGroup?': string('rbac.authorization.k8s.io if absent.', { maxLength: 253 }),
      kind: string('Role in the same namespace, or ClusterRole.', { enum: ['Role', 'ClusterRole'] }),
      'name?': string('Its name; that of the ClusterPermission if absent.', { maxLength: 253 }),
    }),
  },
  { rules: [onePlace, hasSubject] },
)

const roleRef = object(
  'A role of the hub that the managed cluster gets a copy of.',
  {
    'apiGroup?': string('rbac.authorization.k8s.io if absent.', { maxLength: 253 }),
    kind: string('Role or ClusterRole.', { enum: ['Role', 'ClusterRole'] }),
    name: string('Its name on the hub.', { minLength: 1, maxLength: 253 }),
    'namespace?': string('Namespace of a Role.', { maxLength: 63 }),
  },
  {
    rules: [
      {
        rule: '(self.kind == "Role") == has(self.namespace)',
        message: 'a Role needs its namespace; a ClusterRole has none',
      },
    ],
  },
)

const resourceStatus = (description: string) =>
  array(
    description,
    object('One object on the managed cluster.', {
      name: string('Its name.'),
      'namespace?': string('Its namespace.'),
      // The singular is what is written in the field; programs read it there.
      'condition?': conditions('Whether it is applied.'),
    }),
  )

/** Roles, bindings and references; a ClusterSetPermission holds the same for each cluster of its set. */
export const permissionSpec = (description: string) =>
  object(description, {
    'validate?': boolean('Report whether the roles that bindings name exist on the managed cluster.'),
    'clusterRole?': object('A ClusterRole.', { rules }),
    'clusterRoleBinding?': clusterRoleBinding('A ClusterRoleBinding.'),
    'clusterRoleBindings?': array(
      'Several; clusterRoleBinding is then not looked at.',
      clusterRoleBinding('One of them.'),
      {
        maxItems: 256,
      },
    ),
    'roles?': array('Roles.', role, { maxItems: 256 }),
    'roleBindings?': array('RoleBindings.', roleBinding, { maxItems: 256 }),
    'roleRefs?': array('Roles of the hub to copy.', roleRef, { maxItems: 256 }),
  })

/** Under whose authority it is delivered. Only who may approve can write it: see docs/spec/clusterpermission.md. */
export const authorization = object('Under whose authority it is delivered.', {
  wanted: string('A fingerprint of what it gives now: the spec, and the rules of the roles that it copies.', {
    maxLength: 64,
  }),
  'granted?': string('The fingerprint that is granted; nothing is delivered while it is another one.', {
    maxLength: 64,
  }),
  'by?': string('Who granted it.', { maxLength: 1024 }),
  'how?': string('The author may give these rights, somebody approved them, or nobody is asked on this hub.', {
    enum: ['Author', 'Approval', 'Unchecked'],
  }),
  'time?': time('When.'),
})

const schema = () =>
  object('RBAC for the managed cluster that owns the namespace.', {
    'spec?': permissionSpec('Roles and bindings; they get the name of the ClusterPermission.'),
    'status?': object('What the hub reports.', {
      'conditions?': conditions('Whether the RBAC has arrived and whom it is for exists.'),
      'authorization?': authorization,
      'resourceStatus?': object('Object by object.', {
        'clusterRoles?': resourceStatus('ClusterRoles.'),
        'clusterRoleBindings?': resourceStatus('ClusterRoleBindings.'),
        'roles?': resourceStatus('Roles.'),
        'roleBindings?': resourceStatus('RoleBindings.'),
      }),
    }),
  })

const { validation, authorized, workApplied } = conditionType.clusterPermission

/** What `kubectl get` shows of permissions. */
export const permissionColumns = [
  conditionColumn('Valid', validation),
  conditionColumn('Authorized', authorized),
  conditionColumn('Applied', workApplied),
  ageColumn,
]

/** RBAC for one managed cluster. */
export const ClusterPermission = defineKind({
  group: group.rbac,
  kind: 'ClusterPermission',
  plural: 'clusterpermissions',
  scope: 'Namespaced',
  stored: 'v1alpha1',
  versions: { v1alpha1: { schema, columns: permissionColumns } },
})

/** A ClusterPermission as it is on the hub. */
export type ClusterPermission = ObjectOf<typeof ClusterPermission>

/** The roles and bindings of a ClusterPermission. */
export type PermissionSpec = NonNullable<ClusterPermission['spec']>
