import { dirname } from 'node:path'
import { SEARCH_ATTRIBUTES } from '../../../workflows/operation/messages.ts'
import type { Wanted } from './certificates.ts'

/** The steps that a person takes with the files of an installation, and the settings of the servers. */
export const DATABASE = 'signalbox'
type Asked = { at: string; postgres: string; temporal: string; namespace: string }

export const withAccount = (url: string, user: string, password: string): string => {
  const made = new URL(url)
  made.username = user
  made.password = password
  return made.href
}

/** The settings without which the servers use plain text or lose data (reliability.md 4.11), as files to include. */
export const serverFiles = (at: string, older = false): Record<string, string> => ({
  'postgres/postgresql.conf': `ssl = on
ssl_cert_file = '${at}/tls/postgres.pem'
ssl_key_file = '${at}/tls/postgres.key'
fsync = on
full_page_writes = on
synchronous_commit = on
password_encryption = 'scram-sha-256'
max_connections = 400
`,
  'postgres/pg_hba.conf': `local all,replication all peer
hostssl all,replication all all scram-sha-256
`,
  'redis/redis.conf': `port 0
tls-port 6379
tls-cert-file "${at}/tls/redis.pem"
tls-key-file "${at}/tls/redis.key"
tls-ca-cert-file "${at}/tls/ca.pem"
tls-auth-clients no
aclfile "${at}/redis/users.acl"
appendonly yes
appendfsync always
no-appendfsync-on-rewrite no
save ""
maxmemory-policy noeviction
`,
  'nats/server.conf': `tls { cert_file: "${at}/tls/nats.pem", key_file: "${at}/tls/nats.key" }
jetstream { store_dir: "/data", sync_interval: always }
include "accounts.conf"
`,
  'temporal/tls.yaml': temporalTls(at, older),
  // Without it, the roles find each other in plain text.
  'temporal/dynamic.yaml': 'system.enableRingpopTLS:\n  - value: true\n',
})

/** The pair that Temporal's roles show each other. */
export const TEMPORAL_ROLES: Wanted = { name: 'temporal-roles', as: ['server', 'client'] }

/**
 * Whoever calls Temporal may end any workflow, so it has an authority of its own for its callers and its roles. `older`:
 * it admits the authority of all apps too, as long as callers have settings from before that.
 */
const temporalTls = (at: string, older: boolean): string => {
  const pair = (name: string) => `certFile: ${at}/tls/${name}.pem, keyFile: ${at}/tls/${name}.key`
  const admits = (...authorities: string[]) =>
    `requireClientAuth: true, clientCaFiles: [${authorities.map((name) => `${at}/tls/${name}.pem`).join(', ')}]`
  const client = (name: string, authority: string) =>
    `client: { serverName: ${name}, rootCaFiles: [${at}/tls/${authority}.pem] }`
  const { name: roles } = TEMPORAL_ROLES
  return `global:
  tls:
    refreshInterval: 1m
    internode:
      server: { ${pair(roles)}, ${admits('temporal-ca')} }
      ${client(roles, 'temporal-ca')}
    frontend:
      server: { ${pair('temporal')}, ${admits('temporal-ca', ...(older ? ['ca'] : []))} }
      ${client('temporal', 'ca')}
    systemWorker: { ${pair(roles)}, ${client('temporal', 'ca')} }
`
}

export const nextSteps = ({ at, postgres, temporal, namespace }: Asked, apps: readonly string[]): string => {
  const attributes = Object.entries(SEARCH_ATTRIBUTES).map(([name, type]) => `--name ${name} --type ${type}`)
  return `# Next steps

1. Bring this folder to ${at} on each host, or make secrets of it: \`env/<app>.env\`, \`env/<app>.secret.env\`, \`keys/\` and \`tls/\`.
   An app needs its own key and certificate, \`tls/ca.pem\` and \`keys/services.json\`. Keep \`tls/ca.key\` and
   \`tls/temporal-ca.key\` off the hosts.
   Each server has a certificate too: \`tls/{postgres,redis,nats,temporal}.{pem,key}\`. Your own may take its place: the
   set-up keeps a pair of another authority.
2. Redis: include \`${at}/redis/redis.conf\`. Postgres: include \`${at}/postgres/postgresql.conf\`, and make
   \`${at}/postgres/pg_hba.conf\` its hba file. Their accounts must be able to read certificate and key.
3. NATS: include \`${at}/nats/server.conf\`. For an NKEY instead of a password, set SIGNALBOX__NATS__NKEY_FILE in
   \`env/<app>.env\` to ${at}/keys/<app>.nk, and run the set-up again: it makes the seed, and \`accounts.conf\` gets its public key.
4. Temporal, at ${temporal}: merge \`${at}/temporal/tls.yaml\` into its configuration, and \`dynamic.yaml\` beside it into the
   dynamic one. Then it serves only those with a certificate of \`tls/temporal-ca.pem\`: relay, worker,
   its own roles and these commands. If it asks for an API key instead, as Temporal Cloud
   does, run the set-up again with \`--temporal-api-key FILE\`; a public authority may then sign its certificate.
   Temporal Cloud makes namespaces and search attributes on its own pages; elsewhere these commands do:
   \`\`\`
   export TEMPORAL_ADDRESS=${temporal.replace('tls://', '')} TEMPORAL_TLS_SERVER_CA_CERT_PATH=${at}/tls/ca.pem TEMPORAL_TLS_CLIENT_CERT_PATH=${at}/tls/${TEMPORAL_ROLES.name}.pem TEMPORAL_TLS_CLIENT_KEY_PATH=${at}/tls/${TEMPORAL_ROLES.name}.key
   temporal operator namespace create --namespace ${namespace} --retention 30d
   ${attributes.map((one) => `temporal operator search-attribute create --namespace ${namespace} ${one}`).join('\n   ')}
   \`\`\`
5. Postgres: with the password of the account OWNER in PGPASSWORD, \`OWNER_URL=${withAccount(postgres, 'OWNER', '')} npm run
   migrate -- --config ${at}\` makes the database "${DATABASE}", its tables, and a role with rights on its own schema for each
   app. Repeat it before each new version.
6. With Node 24 first in the path, as by \`export PATH=${dirname(process.execPath)}:$PATH\` on this machine, start each of
   ${apps.join(', ')}: \`node --env-file=${at}/env/<app>.env --env-file=${at}/env/<app>.secret.env apps/<app>/main.ts\`.
   A start names every setting that is missing or wrong.
7. The first administrator: \`node --env-file=${at}/env/identity.env --env-file=${at}/env/identity.secret.env
   apps/platform/bootstrap.mjs admin identity bootstrap-admin --username NAME\`. After the password, this person adds a passkey or an
   authenticator app, as do all with a role of SESSION__SECOND_FACTOR__ROLES in \`env/session.env\`.
8. A proxy with a public certificate before the gateway: it ends TLS, and connects to the gateway by TLS too, trusting
   \`tls/ca.pem\`. Name its networks by \`--proxies\` of the set-up, or in GATEWAY__HTTP__TRUSTED_PROXIES of \`env/gateway.env\`.
   Plain text is for a network in which no one but the proxy is. For it, empty GATEWAY__TLS__CERT_FILE and
   GATEWAY__TLS__KEY_FILE there, and set GATEWAY__HTTP__TRUSTED_NETWORK=true.
9. \`npm run doctor -- --production --env ${at}\` connects as each app and names every weakness. Exit 3 means a finding.
10. Backups of Postgres, of Temporal's databases, of this folder and of the relay's anchor file; Redis and NATS need
    none. An alert on the certificates, which live for 90 days: run the set-up again
    and bring the new ones to the hosts. Apps use them within a minute.
`
}
