/** What each app may ask of others (auth.md 5): caller -> target -> scopes. A new setup's registry is built from it. */
export const SERVICE_SCOPES: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  session: {
    identity: ['identity:read', 'identity:federate', 'machines:authenticate', 'passkeys:write', 'passkeys:verify'],
    credential: ['password:verify', 'password:change', 'totp:write', 'totp:verify', 'totp:remove'],
    token: ['token:issue'],
  },
  identity: { credential: ['password:set', 'enrolment:create', 'totp:remove'] },
  gateway: { identity: ['identity:read'] },
  catalog: { identity: ['identity:read'], operations: ['events:read'] },
  operations: { identity: ['identity:read', 'passkeys:verify'], catalog: ['catalog:read'], session: ['sessions:read'] },
  worker: {
    catalog: ['results:apply', 'capabilities:report', 'health:report', 'catalog:read'],
    operations: ['artifacts:write', 'gates:recheck'],
  },
  relay: { session: ['sessions:revoke'] },
  fleet: { catalog: ['health:report'] },
  'demo-control-plane': {
    catalog: ['results:apply', 'capabilities:report', 'health:report', 'catalog:read', 'catalog:admin'],
    operations: [
      'projections:write',
      'signals:write',
      'calendar:write',
      'artifacts:write',
      'events:read',
      'gates:recheck',
    ],
  },
}

export const audienceOf = (app: string): string => `${app}-internal`
