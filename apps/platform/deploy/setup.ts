import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { namesSeveral } from '../../shared/config.ts'
import { takeFolder, writeWhole } from '../base/record.ts'
import { readFlags } from '../base/screen.ts'
import { type Production, TO_FILL, writeProduction } from './production.ts'
import { endRotation, needOld, ROTATIONS, type Rotation, rotate, SERVERS } from './rotate.ts'
import { MOUNTED } from './secrets.ts'

/**
 * `npm run setup -- production --out DIR --origin URL`: writes everything that a production installation needs before
 * its first start. Only --rotate retire needs the network. A second run needs only --out, changes no byte and adds what
 * is missing.
 */
const USAGE = `usage: npm run setup -- production --out DIR --origin https://signalbox.example.com [options]

  --format NAME       files, or kubernetes: also the Secrets of the chart, in secrets.yaml (files)
  --at PATH           where the folder will be on the hosts (DIR; /etc/signalbox with kubernetes)
  --data PATH         where apps keep files of their own (/var/lib/signalbox; with kubernetes always there)
  --hosts PATTERN     where an app is reached by the others ({app}; signalbox-{app} with kubernetes)
  --listen ADDRESS    the address that apps listen on (0.0.0.0)
  --proxies CIDR,CIDR the networks of the proxy before the gateway, which names the addresses of clients
  --postgres URL      the server, without account (postgres://TO_FILL:5432?sslmode=verify-full)
  --redis URL         (rediss://TO_FILL:6379)
  --nats URL          (tls://TO_FILL:4222)
  --temporal ADDRESS  host:port of the frontend, by TLS (tls://TO_FILL:7233)
  --namespace NAME    Temporal's namespace (signalbox)
  --temporal-api-key FILE  the key that Temporal asks for, as Temporal Cloud does: it is copied to keys/temporal.key
  --ca CERT,KEY       PEM files of your authority; without it, one is made
  --rotate STEP       next: adds a key beside each present one; use: makes the new ones sign; retire: ends the trust in
                      the authorities and service keys of before, once all servers answer with new certificates;
                      accounts: new passwords;
                      evidence, push, enrolment: replaces this key, which has leaked. An interrupted step is run again
  --unasked NAME,NAME postgres, redis, nats, temporal: servers that --rotate retire does not ask

A later run needs only --out: setup.json in that folder has the other options.`

const refuse = (why: string): never => {
  console.error(`${why}\n\n${USAGE}`)
  process.exit(2)
}

const DEFAULTS = {
  data: '/var/lib/signalbox',
  format: 'files',
  listen: '0.0.0.0',
  postgres: 'postgres://TO_FILL:5432?sslmode=verify-full',
  redis: 'rediss://TO_FILL:6379',
  nats: 'tls://TO_FILL:4222',
  temporal: 'tls://TO_FILL:7233',
  namespace: 'signalbox',
}

const text = { type: 'string' } as const
const own = { out: text, 'temporal-api-key': text, rotate: text, unasked: text }
const saved = { origin: text, at: text, data: text, format: text, hosts: text, listen: text, proxies: text, ca: text }
const servers = { postgres: text, redis: text, nats: text, temporal: text, namespace: text }
const { positionals, values } = readFlags({ allowPositionals: true, options: { ...own, ...saved, ...servers } }, refuse)
const { out, rotate: rotation, unasked, 'temporal-api-key': api_key_file, ...given } = values
if (positionals.join(' ') !== 'production') refuse('The target of the set-up is missing: production.')
if (!out) refuse('--out is missing: the folder to write.')
const folder = resolve(out as string)
const options_file = join(folder, 'setup.json')
const options: typeof given = {
  ...(existsSync(options_file) && JSON.parse(readFileSync(options_file, 'utf8'))),
  ...given,
}
const { origin = '', ca, at, format, hosts, proxies, ...rest } = { ...DEFAULTS, ...options }
const kubernetes = format === 'kubernetes'
// Browsers name an origin in exactly this form.
const exact = origin.startsWith('https:') ? URL.parse(origin)?.origin : undefined
if (origin !== exact) refuse(`--origin must be an https origin, such as ${exact ?? 'https://signalbox.example.com'}.`)
if (!kubernetes && format !== 'files') refuse(`--format must be files or kubernetes, not ${format}.`)
if (kubernetes && at !== undefined && at !== MOUNTED) refuse(`--at must be ${MOUNTED} with --format kubernetes.`)
if (kubernetes && rest.data !== DEFAULTS.data) refuse(`--data must be ${DEFAULTS.data} with --format kubernetes.`)
if (proxies?.split(',').some((one) => !/^[\da-fA-F.:]+\/\d+$/.test(one)))
  refuse(`--proxies takes networks, such as 10.0.0.0/8,fd00::/8, not ${proxies}.`)
if (!rest.temporal.includes('://')) rest.temporal = `tls://${rest.temporal}`
for (const name of ['postgres', 'redis', 'nats', 'temporal'] as const)
  if (namesSeveral(rest[name])) refuse(`--${name} takes one name that leads to every server, not ${rest[name]}`)
  else if (!URL.canParse(rest[name])) refuse(`--${name} is not a URL: ${rest[name]}`)
const [cert_file = '', key_file = ''] = ca?.split(',').map((file) => resolve(file)) ?? []
if (ca !== undefined) options.ca = `${cert_file},${key_file}`
// A later run needs the files only if a certificate is due.
if (given.ca !== undefined && ![cert_file, key_file].every((file) => existsSync(file)))
  refuse('--ca names two files, CERT,KEY: one is missing.')
if (api_key_file !== undefined && !existsSync(api_key_file))
  refuse(`--temporal-api-key names a file that does not exist: ${api_key_file}`)
const asked: Production = {
  ...rest,
  origin,
  out: folder,
  at: at ?? (kubernetes ? MOUNTED : folder),
  proxies: proxies?.split(','),
  hosts: hosts ?? (kubernetes ? 'signalbox-{app}' : '{app}'),
  kubernetes,
  temporal_api_key: api_key_file && readFileSync(api_key_file, 'utf8'),
  authority: ca === undefined ? undefined : { cert_file, key_file },
}
if (rotation !== undefined && !ROTATIONS.includes(rotation as Rotation))
  refuse(`--rotate takes ${ROTATIONS.join(', ')}, not ${rotation}.`)
const passed_over = unasked?.split(',') ?? []
if (passed_over.some((name) => !SERVERS.some((server) => server === name)))
  refuse(`--unasked takes names among ${SERVERS.join(', ')}, not ${unasked}.`)
const fail = ({ message }: { message: string }): never => {
  console.error(`setup: ${message}`)
  process.exit(1)
}
try {
  const taken = (pid: number) => new Error(`process ${pid} is writing ${folder}: run it again once that has ended.`)
  process.on('exit', takeFolder(folder, 'setup.pid', taken))
} catch (error) {
  fail(error as Error)
}
const needed =
  rotation === 'retire' && existsSync(join(folder, 'tls'))
    ? await needOld(folder, asked.at, passed_over).catch(fail)
    : []
if (needed.length > 0) {
  const names = SERVERS.filter((server) => needed.some((line) => line.split(' ')[0] === server))
  const remedy = `Give them their new files, restart them, and run this again where they are known by these names.
With --unasked ${names.join(',')} it does not ask: apps then refuse a server with an old certificate.`
  fail({ message: `some servers must first show their new certificates:\n  ${needed.join('\n  ')}\n${remedy}` })
}
const hindrance = await rotate(folder, rotation as Rotation | undefined)
if (hindrance) refuse(hindrance)
const kept = await writeProduction(asked).catch(fail)
writeWhole(options_file, `${JSON.stringify(options, null, 2)}\n`)
endRotation(folder)
console.log(`${folder} holds the configuration. For the remaining steps, see ${folder}/NEXT.md`)
const open = (['postgres', 'redis', 'nats', 'temporal'] as const).filter((name) => asked[name].includes(TO_FILL))
if (kept.length > 0) console.log(`These settings keep the values of the previous run:\n  ${kept.join('\n  ')}`)
if (open.length > 0)
  console.log(
    `${TO_FILL} stands for the address of ${open.join(', ')}. Pass ${open.map((name) => `--${name}`).join(' ')} and run it again, or edit ${folder}/env.`,
  )
