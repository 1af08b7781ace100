import { createPrivateKey, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import type { TObject } from 'typebox'
import { faultsOf, loadConfig } from '../../shared/config.ts'
import { type Links, loadLinks } from '../../shared/links.ts'
import { loadMtls } from '../../shared/process/mtls.ts'
import { paint } from '../base/screen.ts'
import { certificateOf } from './peer.ts'
import { PRODUCTION_APPS } from './production.ts'
import { SCHEMAS } from './reference.ts'
import { type Subject, type Weakness, weakNats, weakPostgres, weakRedis, weakTemporal } from './weaknesses.ts'

export type Finding = { app: string; about: string; what: string; remedy: string }
const DAY_MS = 86_400_000
const LEAST_DAYS = 14
const FOUND = 3

/**
 * `npm run doctor -- --production --env DIR`: connects as each app with the files that the set-up wrote, and names every
 * weakness with its remedy. Answers the exit code: 3 if there is one.
 */
export const diagnose = async (dir: string | undefined): Promise<number> => {
  if (!dir || !existsSync(join(dir, 'env'))) {
    console.error(
      'usage: npm run doctor -- --production --env DIR: the folder that "npm run setup -- production" wrote.',
    )
    return 2
  }
  const found = (await Promise.all(PRODUCTION_APPS.map(({ name }) => findingsOf(name, dir)))).flat()
  for (const { app, about, what, remedy } of found)
    console.log(`${paint('red', 'wrong')}  ${app.padEnd(11)} ${about.padEnd(12)} ${what}. ${remedy}.`)
  const checked = `${PRODUCTION_APPS.length} apps with their settings, certificates, Postgres, Redis, NATS and Temporal`
  console.log(found.length === 0 ? `${paint('green', 'ok')}     ${checked}` : `${found.length} findings in ${checked}`)
  return found.length === 0 ? 0 : FOUND
}

const environmentOf = (dir: string, app: string): NodeJS.ProcessEnv => ({
  ...parseEnv(readFileSync(join(dir, `env/${app}.env`), 'utf8')),
  ...parseEnv(readFileSync(join(dir, `env/${app}.secret.env`), 'utf8')),
})

const findingsOf = async (app: string, dir: string): Promise<Finding[]> => {
  const env = environmentOf(dir, app)
  const told =
    (about: string) =>
    ([what, remedy]: Weakness): Finding => ({ app, about, what, remedy })
  const schema = SCHEMAS[app as keyof typeof SCHEMAS] as TObject
  const faults = [loadMtls, loadLinks, (given: NodeJS.ProcessEnv) => loadConfig(schema, given)].flatMap((load) =>
    faultsOf(() => load(env)),
  )
  const findings = faults.map((fault) => told('settings')([fault.replace(/\.$/, ''), 'Mend it, or set up again']))
  findings.push(...weakCertificate(app, env).map(told('certificate')))
  // A link whose own settings cannot be read has been named above.
  if (faultsOf(() => loadLinks(env)).length > 0) return findings
  const subject = { app, links: loadLinks(env), prefix: env.AUTH__REDIS__PREFIX ?? '' }
  const links = await Promise.all(
    linksIn(app, env).map(async (link) => (await weakLink(subject, link)).map(told(link.about))),
  )
  return [...findings, ...links.flat()]
}

/** The certificate of an app: its time, its name, its chain and its key. */
const weakCertificate = (app: string, env: NodeJS.ProcessEnv): Weakness[] => {
  const mtls = faultsOf(() => loadMtls(env)).length === 0 ? loadMtls(env) : undefined
  if (!mtls) return []
  const renew = 'Remove it and set up again'
  const cert = new X509Certificate(mtls.cert)
  const isOfAuthority = (mtls.ca.match(/-----BEGIN[\s\S]+?-----END CERTIFICATE-----/g) ?? []).some((pem) => {
    const ca = new X509Certificate(pem)
    return cert.checkIssued(ca) && cert.verify(ca.publicKey)
  })
  return [
    ...soon(cert.validTo, renew),
    ...(cert.checkHost(app) ? [] : [[`its certificate is not for ${app}`, renew] as const]),
    ...(isOfAuthority ? [] : [['its certificate is not of the authority in AUTH__TLS__CA_FILE', renew] as const]),
    ...(cert.checkPrivateKey(createPrivateKey(mtls.key))
      ? []
      : [['its key is not that of its certificate', renew] as const]),
  ]
}

const soon = (valid_to: string, remedy: string): Weakness[] => {
  const days = Math.floor((Date.parse(valid_to) - Date.now()) / DAY_MS)
  if (days >= LEAST_DAYS) return []
  return [[days < 0 ? `its certificate expired on ${valid_to}` : `its certificate expires in ${days} days`, remedy]]
}

type Link = {
  about: string
  protocol: string
  host: string
  port: number
  ca?: string
  look: (subject: Subject) => Promise<Weakness[]>
}
const PORTS: Record<string, number> = { postgres: 5432, redis: 6379, nats: 4222, temporal: 7233 }

/** The servers of an app, by the addresses in its environment. */
const linksIn = (app: string, env: NodeJS.ProcessEnv): Link[] => {
  const upper = app.toUpperCase()
  const namespace = env[`${upper}__TEMPORAL__NAMESPACE`] ?? 'default'
  const of = (about: string, setting: string, look: (subject: Subject, url: string) => Promise<Weakness[]>): Link[] => {
    const url = env[`${upper}__${setting}`]
    // A plain one has been named by its setting, and nothing is sent to it.
    if (!url || !URL.canParse(url) || !/^(postgres(ql)?|rediss|tls):/.test(url)) return []
    const { protocol, hostname: host, port, searchParams } = new URL(url)
    const ca = searchParams.get('sslrootcert')
    return [
      {
        about,
        protocol: about === 'temporal' ? 'temporal:' : protocol,
        host,
        port: Number(port || PORTS[about]),
        ...(ca && { ca }),
        look: (subject) => look(subject, url),
      },
    ]
  }
  return [
    ...of('postgres', 'DATABASE__URL', weakPostgres),
    ...of('redis', 'REDIS__URL', weakRedis),
    ...of('nats', 'NATS__URL', weakNats),
    ...of('temporal', 'TEMPORAL__ADDRESS', (subject, address) => weakTemporal(subject, address, namespace)),
  ]
}

/** How TLS fails, in the words of its remedy. */
const REMEDIES: [RegExp, string][] = [
  [/EXPIRED/, 'Renew the certificate of the server'],
  [/ALTNAME/, 'Give the server a certificate with this name, or use the name that it has'],
  [/SELF_SIGNED|UNABLE_TO|ISSUER/, 'Name the authority of the server in the CA file, or renew its certificate'],
  [/has no TLS/, 'Give the server a certificate: NEXT.md, steps 2 to 4'],
  [/password|WRONGPASS|NOAUTH|AUTHORIZATION|28P01/i, 'Make the account of the server as the set-up wrote it'],
]
const remedyOf = (error: Error & { code?: string }): Weakness => {
  const text = `${error.code ?? ''} ${error.message}`
  const remedy = REMEDIES.find(([words]) => words.test(text))?.[1]
  return [error.message || text, remedy ?? 'See that the server runs, and that this host reaches it']
}

const weakLink = async (subject: Subject, { ca, look, ...at }: Link): Promise<Weakness[]> => {
  const { links } = subject
  const name = at.about === 'temporal' ? links.server_name : undefined
  const tls: Links = ca ? { ...links, tls: { ca: readFileSync(ca, 'utf8') } } : links
  try {
    const { valid_to } = await certificateOf({ ...at, ...(name && { server_name: name }) }, tls)
    const ending = soon(valid_to, 'Renew the certificate of the server')
    return [...ending, ...(await look(subject))]
  } catch (error) {
    return [remedyOf(error as Error)]
  }
}
