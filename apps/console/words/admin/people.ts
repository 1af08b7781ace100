/** Texts for users, their sessions and identities, groups and grants. */
export const user = {
  title: 'Users',
  empty: 'No users match.',
  search: 'Find users by name',
  columns: { name: 'Name', status: 'Status', roles: 'Roles', groups: 'Groups', since: 'Since' },
  create: 'New user',
  create_effect: 'The account gets a one-time link to set a password.',
  username: 'Username',
  first_role: 'First role',
  machine: 'Service account',
  disable: 'Disable',
  disable_effect: 'All sessions end, and no sign-in works. Grants stay.',
  sessions_pending: 'Sessions end within a moment.',
  enable: 'Enable',
  enable_effect: 'Signing in works again. No earlier session comes back.',
  delete: 'Delete',
  delete_effect: 'The account ends for good. Its name is never used again.',
  link: 'New link',
  link_effect: 'A one-time link sets a new password.',
  recover: 'Recover',
  recover_effect:
    'Passkeys, provider links, sessions and password end. A one-time link sets a new password. Who signs in through a provider only loses the factors, and adds new ones.',
  unlock: 'Unlock',
  unlock_effect: 'Guesses that failed no longer delay the next sign-in.',
  link_shown: 'Hand this link over now. It is shown only once.',
}

export const session = {
  title: 'Sessions',
  empty: 'No active sessions.',
  end: 'End',
  end_one: (device: string) => `End the session on ${device}`,
  end_effect: 'This device is signed out.',
  end_all: 'End all sessions',
  end_all_effect: 'Every device of this user is signed out.',
}

export const identity = {
  title: 'Identities at providers',
  empty: 'No identity at a provider.',
  provider: 'Provider',
  subject: 'Subject',
  linked: 'Linked',
  unlink: 'Unlink',
  unlink_one: (provider: string) => `Unlink ${provider}`,
  unlink_effect:
    'All sessions end, as do the rights from sign-ins there. Only a password or another provider stays a way in.',
}

export const unlinked = {
  title: 'Without a provider',
  about:
    'Active people whom no provider signs in. Who has a second account there links the old one and drops the new one; the guide is in apps/identity.',
  empty: 'Everyone signs in through a provider.',
  twins: 'Perhaps also',
  emergency: 'emergency account',
  invited: 'has never signed in',
}

export const group = {
  title: 'Groups',
  empty: 'No groups yet.',
  create: 'New group',
  create_effect: 'Gate policies name a group by its key. The key never changes.',
  rename: 'Rename',
  rename_one: (name: string) => `Rename ${name}`,
  rename_effect: 'Only the name changes. The key and the members stay.',
  delete: 'Delete',
  delete_one: (name: string) => `Delete ${name}`,
  delete_effect: 'Its memberships and grants end at once. Gates that name it have no approvers from it.',
  key: 'Key',
  name: 'Name',
  add: 'Add a member',
  join: 'Add to a group',
  join_effect: 'The grants of the group hold for this user.',
  member: 'Member',
  added_by: 'Added by',
  members: (name: string) => `Members of ${name}`,
  no_members: 'No members.',
  group: 'Group',
  leave: (user: string, group: string) => `Remove ${user} from ${group}`,
  leave_effect: 'The grants of the group no longer hold for this user.',
}

export const grant = {
  title: 'Grants',
  empty: 'No grants.',
  columns: { subject: 'For', role: 'Role', where: 'Where', until: 'Until', from: 'From' },
  add: 'Grant a role',
  to: (name: string) => `Grant a role to ${name}`,
  add_effect: 'Empty fields mean everywhere. Roles admin and auditor take no place.',
  remove: (role: string, where: string, name: string) => `Remove ${role} (${where}) from ${name}`,
  remove_effect: 'The right ends at once.',
  direct: 'Direct',
  until: 'Last day (UTC)',
  role: 'Role',
}
