/** The role table of the authorization model (auth.md 9): the only source of a role's rights. */

export const ROLES = ['viewer', 'planner', 'operator', 'approver', 'engineer', 'admin', 'auditor'] as const
/** Including roles that only machines hold: a controller is a control plane. */
export const ALL_ROLES = [...ROLES, 'controller'] as const
export type Role = (typeof ALL_ROLES)[number]

const HOLDERS = {
  'catalog:read': ALL_ROLES,
  'operation:read': ALL_ROLES,
  'log:read': ['viewer', 'planner', 'operator', 'approver', 'engineer', 'auditor', 'controller'],
  'intent:create': ['planner', 'operator'],
  'patch:propose': ['planner', 'operator'],
  'plan:start': ['operator'],
  'operation:control': ['operator'],
  'operation:intervene': ['operator'],
  'catalog:write': ['operator'],
  'gate:decide': ['approver'],
  'patch:decide': ['approver'],
  'engine:inspect': ['engineer'],
  'platform:read': ['engineer'],
  'catalog:record': ['admin', 'controller'],
  'signal:send': ['controller'],
  'identity:admin': ['admin'],
  'session:admin': ['admin'],
  'identity:read': ['admin', 'auditor'],
  'audit:read': ['admin', 'auditor'],
  /** Held by no role: the providers file names the machine, and its key permits it. */
  'scim:write': [],
} as const satisfies Record<string, readonly Role[]>

export type Permission = keyof typeof HOLDERS
export const PERMISSIONS = Object.keys(HOLDERS) as Permission[]

/** Permissions about what has no place: accounts, and what everyone did. A scope cannot limit them. */
export const PLACELESS: ReadonlySet<string> = new Set<Permission>([
  'identity:read',
  'identity:admin',
  'session:admin',
  'audit:read',
  'platform:read',
  'scim:write',
])

/** Roles that cover everything: a grant of them takes no scope. */
export const UNSCOPED_ROLES: ReadonlySet<Role> = new Set(['admin', 'auditor'])

/** Roles that an account of each kind may hold. Machines hold none that decides, confirms or administers. */
export const ROLES_OF: Record<'person' | 'machine', ReadonlySet<string>> = {
  person: new Set<Role>(ROLES),
  machine: new Set<Role>(['viewer', 'planner', 'operator', 'auditor', 'controller']),
}

export const isRole = (text: string): text is (typeof ROLES)[number] => (ROLES as readonly string[]).includes(text)

const BY_ROLE = new Map<string, ReadonlySet<Permission>>(
  ALL_ROLES.map((role) => [role, new Set(PERMISSIONS.filter((p) => (HOLDERS[p] as readonly Role[]).includes(role)))]),
)

/** Returns everything that any of these roles may do, somewhere. Unknown roles may do nothing. */
export const permissionsOf = (roles: Iterable<string>): ReadonlySet<Permission> => {
  const granted = new Set<Permission>()
  for (const role of roles) for (const permission of BY_ROLE.get(role) ?? []) granted.add(permission)
  return granted
}

export const roleHas = (role: string, permission: Permission): boolean => BY_ROLE.get(role)?.has(permission) ?? false

/** Returns the hint for a person who lacks these permissions: each by name, and the roles that have one of them. */
export const missingWords = (permissions: readonly string[]): string => {
  const roles = ALL_ROLES.filter((role) =>
    permissions.some((permission) => BY_ROLE.get(role)?.has(permission as Permission)),
  )
  const holders = roles.length === 0 || roles.length === ALL_ROLES.length ? '' : ` (role ${roles.join(' or ')})`
  return `This needs the permission ${permissions.join(' or ')}${holders}.`
}
