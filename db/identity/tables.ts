import { sql } from 'drizzle-orm'
import {
  bigint,
  boolean,
  check,
  index,
  integer,
  jsonb,
  pgSchema,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'
import type { ChangeRequests } from '../../apps/shared/contracts/identity/changes.ts'
import type { Preferences } from '../../apps/shared/contracts/identity/preferences.ts'
import type { ViewList } from '../../apps/shared/contracts/identity/views.ts'
import { auditTable } from '../audit.ts'
import { at } from '../columns.ts'
import { idempotencyTable } from '../command/keys.ts'
import { outboxTables } from '../outbox.ts'
import { NOW } from '../rows.ts'

/** Rows of the identity app: people, their groups, and their rights and scopes (auth.md 8, 9). */
export const identitySchema = pgSchema('identity')

export type UserStatus = 'ACTIVE' | 'DISABLED' | 'DELETED'
export type UserKind = 'person' | 'machine'
export type ScopeColumn = Partial<
  Record<'region_id' | 'datacenter_id' | 'layer_id' | 'segment_id' | 'type_key', string>
>

export const users = identitySchema.table(
  'users',
  {
    id: uuid('id').primaryKey(),
    username: text('username').notNull(),
    /** The form in which names are compared; never reused, not even after a delete. */
    folded: text('folded').notNull(),
    status: text('status').$type<UserStatus>().notNull().default('ACTIVE'),
    kind: text('kind').$type<UserKind>().notNull().default('person'),
    /** Grows with every change of status, groups or grants of this user. */
    version: bigint('version', { mode: 'number' }).notNull().default(1),
    created_at: at('created_at').notNull().default(NOW),
    disabled_at: at('disabled_at'),
    /** When and by whom the credential was last handed to another person: by creation with a link, or by a reset. */
    reset_at: at('reset_at'),
    reset_by: text('reset_by'),
    reset_confirmed_by: text('reset_confirmed_by'),
    /** Id in credential of the last link, after `shown:` if one administrator saw it whole; null: there is no link. */
    reset_link: text('reset_link'),
    /** Whether one administrator may know the credential: true until enrolment by a link that no one else saw whole. */
    link_shown: boolean('link_shown').notNull().default(true),
    /** Whether its person has set a password; an account that never had a link to do so counts as enrolled. */
    enrolled: boolean('enrolled').notNull().default(true),
    /** Whether two administrators have started its recovery: until its person enrols, no sign-in works. */
    recovering: boolean('recovering').notNull().default(false),
    /** The identity provider that created the account: it has no password and gets none. */
    provider: text('provider'),
    /** When a recovery ended the factors that credential stores; null once credential has ended them. */
    factors_ended_at: at('factors_ended_at'),
  },
  (t) => [
    uniqueIndex('users_folded').on(t.folded),
    index().on(t.username, t.id),
    index().on(t.factors_ended_at).where(sql`factors_ended_at is not null`),
    check('users_status', sql`${t.status} in ('ACTIVE', 'DISABLED', 'DELETED')`),
    check('users_kind', sql`${t.kind} in ('person', 'machine')`),
  ],
)
export type UserRow = typeof users.$inferSelect

/** A person's identity at an identity provider, found by provider and subject, never by a name or an email address. */
export const external_identities = identitySchema.table(
  'external_identities',
  {
    provider: text('provider').notNull(),
    subject: text('subject').notNull(),
    user_id: uuid('user_id')
      .notNull()
      .references(() => users.id),
    /** The directory's id of this person, from the claim that the file names; as of their last sign-in. */
    external_id: text('external_id'),
    /** When the provider last signed this person in; null: when the identity was made. */
    proved_at: at('proved_at'),
    created_at: at('created_at').notNull().default(NOW),
  },
  (t) => [primaryKey({ columns: [t.provider, t.subject] }), uniqueIndex().on(t.user_id, t.provider)],
)

export const groups = identitySchema.table('groups', {
  group_key: text('group_key').primaryKey(),
  name: text('name').notNull(),
  description: text('description'),
  version: bigint('version', { mode: 'number' }).notNull().default(1),
  created_at: at('created_at').notNull().default(NOW),
})

export const group_members = identitySchema.table(
  'group_members',
  {
    group_key: text('group_key')
      .notNull()
      .references(() => groups.group_key),
    user_id: uuid('user_id')
      .notNull()
      .references(() => users.id),
    added_at: at('added_at').notNull().default(NOW),
    /** Unknown for rows older than these columns. */
    added_by: text('added_by'),
    confirmed_by: text('confirmed_by'),
  },
  (t) => [primaryKey({ columns: [t.group_key, t.user_id] }), index().on(t.user_id)],
)

export const grants = identitySchema.table(
  'grants',
  {
    id: uuid('id').primaryKey(),
    subject_type: text('subject_type').$type<'user' | 'group'>().notNull(),
    /** A user's id or a group's key. */
    subject_id: text('subject_id').notNull(),
    role: text('role').notNull(),
    scope: jsonb('scope').$type<ScopeColumn>().notNull().default({}),
    expires_at: at('expires_at'),
    created_at: at('created_at').notNull().default(NOW),
    created_by: text('created_by').notNull(),
    confirmed_by: text('confirmed_by'),
  },
  (t) => [uniqueIndex('grants_once').on(t.subject_type, t.subject_id, t.role, t.scope), index().on(t.role)],
)
export type GrantRow = typeof grants.$inferSelect

export type ChangeKind = keyof ChangeRequests
export type ChangeStatus = 'pending' | 'confirmed' | 'rejected' | 'withdrawn'

/** Changes that wait for a second administrator, and decided ones (federation.md 2). */
export const changes = identitySchema.table(
  'changes',
  {
    id: uuid('id').primaryKey(),
    kind: text('kind').$type<ChangeKind>().notNull(),
    /** The request, in the form that its kind's measure takes. */
    request: jsonb('request').$type<Record<string, unknown>>().notNull(),
    status: text('status').$type<ChangeStatus>().notNull().default('pending'),
    /** The subject of the change, as of the request or, once decided, of the decision; and the digest of both. */
    subject: jsonb('subject').$type<Record<string, unknown>>().notNull(),
    digest: text('digest').notNull(),
    requested_by: text('requested_by').notNull(),
    requested_at: at('requested_at').notNull().default(NOW),
    expires_at: at('expires_at').notNull(),
    decided_by: text('decided_by'),
    decided_at: at('decided_at'),
    /** The account whose enrolment link the change creates once it is confirmed. */
    user_id: uuid('user_id'),
  },
  (t) => [
    index().on(t.status, t.id),
    check('changes_status', sql`${t.status} in ('pending', 'confirmed', 'rejected', 'withdrawn')`),
  ],
)
export type ChangeRow = typeof changes.$inferSelect

/** One row from the moment two administrators check each other; never deleted. */
export const dual_control = identitySchema.table(
  'dual_control',
  { id: boolean('id').primaryKey().default(true), since: at('since').notNull().default(NOW) },
  (t) => [check('dual_control_once', sql`${t.id}`)],
)

/** The people responsible for a machine (federation.md 6). */
export const machine_owners = identitySchema.table(
  'machine_owners',
  {
    machine_id: uuid('machine_id')
      .notNull()
      .references(() => users.id),
    user_id: uuid('user_id')
      .notNull()
      .references(() => users.id),
  },
  (t) => [primaryKey({ columns: [t.machine_id, t.user_id] })],
)

export type CredentialKind = 'key' | 'jwk' | 'trust'
/** What a machine trusts instead of a secret: CI tokens of this issuer, for this audience, with these claims. */
export type Trust = { issuer: string; audience: string; claims: Record<string, string> }

/** The credentials of machines. For a key, only the hash is stored. */
export const machine_credentials = identitySchema.table(
  'machine_credentials',
  {
    id: uuid('id').primaryKey(),
    machine_id: uuid('machine_id')
      .notNull()
      .references(() => users.id),
    kind: text('kind').$type<CredentialKind>().notNull(),
    name: text('name').notNull(),
    secret_hash: text('secret_hash'),
    jwk: jsonb('jwk').$type<Record<string, unknown>>(),
    trust: jsonb('trust').$type<Trust>(),
    permissions: text('permissions').array().notNull(),
    scope: jsonb('scope').$type<ScopeColumn>().notNull().default({}),
    /** The networks from which it may be used (CIDR); empty: from anywhere. */
    networks: text('networks').array().notNull().default([]),
    created_at: at('created_at').notNull().default(NOW),
    created_by: text('created_by').notNull(),
    confirmed_by: text('confirmed_by'),
    expires_at: at('expires_at').notNull(),
    /** How many of the notices before its expiry the owners have received (`ending.ts`). */
    told: integer('told').notNull().default(0),
    revoked_at: at('revoked_at'),
    last_used_at: at('last_used_at'),
    /** When its owners were told that it is not used; a later use ends this. */
    unused_told_at: at('unused_told_at'),
    last_address: text('last_address'),
  },
  (t) => [
    index().on(t.machine_id, t.id),
    check('machine_credentials_kind', sql`${t.kind} in ('key', 'jwk', 'trust')`),
    check('machine_credentials_one', sql`num_nonnulls(${t.secret_hash}, ${t.jwk}, ${t.trust}) = 1`),
  ],
)
export type MachineCredentialRow = typeof machine_credentials.$inferSelect

/** Passkeys of people (federation.md 8): what verifies a signature, and no secrets. */
export const passkeys = identitySchema.table(
  'passkeys',
  {
    id: uuid('id').primaryKey(),
    user_id: uuid('user_id')
      .notNull()
      .references(() => users.id),
    /** The id that the authenticator uses, base64url. */
    credential_id: text('credential_id').notNull(),
    /** COSE, base64url. */
    public_key: text('public_key').notNull(),
    /** Grows with each use; always 0 if the authenticator does not count. */
    counter: bigint('counter', { mode: 'number' }).notNull(),
    backed_up: boolean('backed_up').notNull(),
    name: text('name').notNull(),
    created_at: at('created_at').notNull().default(NOW),
    last_used_at: at('last_used_at'),
  },
  (t) => [uniqueIndex('passkeys_credential').on(t.credential_id), index().on(t.user_id, t.id)],
)
export type PasskeyRow = typeof passkeys.$inferSelect

/** Searches that a person has saved under a name (console.md 5.1). */
export const saved_views = identitySchema.table(
  'saved_views',
  {
    id: uuid('id').primaryKey(),
    user_id: uuid('user_id')
      .notNull()
      .references(() => users.id),
    list: text('list').$type<ViewList>().notNull(),
    name: text('name').notNull(),
    filters: jsonb('filters').$type<Record<string, string>>().notNull(),
    /** Whose members see it, for as long as the owner is one of them. */
    group_key: text('group_key').references(() => groups.group_key, { onDelete: 'set null' }),
    version: bigint('version', { mode: 'number' }).notNull().default(1),
    created_at: at('created_at').notNull().default(NOW),
  },
  (t) => [uniqueIndex('saved_views_name').on(t.user_id, sql`lower(${t.name})`), index().on(t.group_key)],
)
export type SavedViewRow = typeof saved_views.$inferSelect

/** A person's display preferences for the console (console.md 9). */
export const preferences = identitySchema.table('preferences', {
  user_id: uuid('user_id')
    .primaryKey()
    .references(() => users.id),
  settings: jsonb('settings').$type<Preferences>().notNull(),
  changed_at: at('changed_at').notNull().default(NOW),
})

/** People and groups that a provider's directory manages (federation.md 9). A person has the id of the account. */
export const scim_resources = identitySchema.table(
  'scim_resources',
  {
    id: uuid('id').primaryKey(),
    provider: text('provider').notNull(),
    type: text('type').$type<'User' | 'Group'>().notNull(),
    /** The directory's own id; once known, it never changes. */
    external_id: text('external_id'),
    /** userName of a person, displayName of a group. */
    name: text('name').notNull(),
    folded: text('folded').notNull(),
    display_name: text('display_name'),
    /** `disabled_at` of the account, if the directory disabled it and no administrator did. */
    disabled_at: at('disabled_at'),
    /** Removed in the directory: its reads do not find it, and the same external id restores the person. */
    removed: boolean('removed').notNull().default(false),
    version: bigint('version', { mode: 'number' }).notNull().default(1),
    created_at: at('created_at').notNull().default(NOW),
    updated_at: at('updated_at').notNull().default(NOW),
  },
  (t) => [
    uniqueIndex().on(t.provider, t.type, t.external_id),
    // Groups of one name are told apart by their ids; where the map names them, SCIM refuses the second.
    uniqueIndex('scim_people_names').on(t.provider, t.folded).where(sql`type = 'User'`),
    index('scim_names').on(t.provider, t.type, t.folded),
  ],
)
export type ScimRow = typeof scim_resources.$inferSelect

const resource = (name: string) =>
  uuid(name)
    .notNull()
    .references(() => scim_resources.id, { onDelete: 'cascade' })
export const scim_members = identitySchema.table(
  'scim_members',
  { group_id: resource('group_id'), user_id: resource('user_id') },
  (t) => [primaryKey({ columns: [t.group_id, t.user_id] }), index().on(t.user_id)],
)
/** Members of a large group that changed, whose rights have yet to follow. Rows of people stay, so it checks no key. */
export const scim_unaligned = identitySchema.table('scim_unaligned', { user_id: uuid('user_id').primaryKey() })

/** Used assertions and CI tokens: each counts once. For CI tokens, `credential_id` stands for their issuer. */
export const machine_assertions = identitySchema.table(
  'machine_assertions',
  {
    credential_id: uuid('credential_id').notNull(),
    jti: text('jti').notNull(),
    expires_at: at('expires_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.credential_id, t.jti] }), index().on(t.expires_at)],
)

/**
 * The user whom the details of an event name: whose grant it is, who is the member or the owner. A body is canonical JSON,
 * so a member has one spelling, and other texts in it hold no plain quotes.
 */
export const named_user = sql<string | null>`substring(body from '"(?:subject_id|user_id)":"([^"]+)"')`
export const user_events = auditTable(identitySchema, 'user_events', ({ id: event_id }) => [
  index('user_events_named_user').on(named_user, event_id).where(sql`${named_user} is not null`),
])
export const idempotency = idempotencyTable(identitySchema)
export const { outbox, relay_state } = outboxTables(identitySchema, { swept: true })
