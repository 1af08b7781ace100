import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { type Production, TO_FILL, writeProduction } from './production.ts'
import { MOUNTED } from './secrets.ts'

/**
 * `npm run setup -- production --out DIR --origin URL`: writes everything that a production installation needs before
 * its first start. Works offline; a second run changes no byte and adds what is missing.
 */
const USAGE = `usage: npm run setup -- production --out DIR --origin https://signalbox.example.com [options]

  --format NAME       files, or kubernetes: also the Secrets of the chart, in secrets.yaml (files)
  --at PATH           where the folder will be on the hosts (DIR; /etc/signalbox with kubernetes)
  --data PATH         where apps keep files of their own (/var/lib/signalbox)
  --hosts PATTERN     where an app is reached by the others ({app}; signalbox-{app} with kubernetes)
  --listen ADDRESS    the address that apps listen on (0.0.0.0)
  --postgres URL      the server, without account (postgres://TO_FILL:5432?sslmode=verify-full)
  --redis URL         (rediss://TO_FILL:6379)
  --nats URL          (tls://TO_FILL:4222)
  --temporal ADDRESS  host:port of the frontend, by TLS (tls://TO_FILL:7233)
  --namespace NAME    Temporal's namespace (signalbox)
  --temporal-api-key FILE  the key that Temporal asks for, as Temporal Cloud does: it is copied to keys/temporal.key
  --ca CERT,KEY       PEM files of your authority; without it, one is made`

const refuse = (why: string): never => {
  console.error(`${why}\n\n${USAGE}`)
  process.exit(2)
}

const read = () => {
  try {
    const text = { type: 'string' } as const
    return parseArgs({
      allowPositionals: true,
      options: {
        out: text,
        origin: text,
        at: text,
        data: { ...text, default: '/var/lib/signalbox' },
        format: { ...text, default: 'files' },
        hosts: text,
        listen: { ...text, default: '0.0.0.0' },
        postgres: { ...text, default: 'postgres://TO_FILL:5432?sslmode=verify-full' },
        redis: { ...text, default: 'rediss://TO_FILL:6379' },
        nats: { ...text, default: 'tls://TO_FILL:4222' },
        temporal: { ...text, default: 'tls://TO_FILL:7233' },
        namespace: { ...text, default: 'signalbox' },
        'temporal-api-key': text,
        ca: text,
      },
    })
  } catch (error) {
    return refuse((error as Error).message)
  }
}

const { positionals, values } = read()
const { out, origin = '', ca, at, format, hosts, 'temporal-api-key': api_key_file, ...rest } = values
const kubernetes = format === 'kubernetes'
if (positionals.join(' ') !== 'production') refuse('The target of the set-up is missing: production.')
if (!out) refuse('--out is missing: the folder to write.')
if (!/^https:\/\/[^/]+$/.test(origin))
  refuse('--origin must be an https origin, such as https://signalbox.example.com.')
if (!kubernetes && format !== 'files') refuse(`--format must be files or kubernetes, not ${format}.`)
if (kubernetes && at !== undefined && at !== MOUNTED) refuse(`--at must be ${MOUNTED} with --format kubernetes.`)
for (const name of ['postgres', 'redis', 'nats'] as const)
  if (!URL.canParse(rest[name])) refuse(`--${name} is not a URL: ${rest[name]}`)
if (!rest.temporal.includes('://')) rest.temporal = `tls://${rest.temporal}`
const [cert_file = '', key_file = ''] = ca?.split(',') ?? []
if (ca !== undefined && ![cert_file, key_file].every((file) => existsSync(file)))
  refuse('--ca names two files, CERT,KEY: one is missing.')
if (api_key_file !== undefined && !existsSync(api_key_file))
  refuse(`--temporal-api-key names a file that does not exist: ${api_key_file}`)
const folder = resolve(out as string)
const asked: Production = {
  ...rest,
  origin,
  out: folder,
  at: at ?? (kubernetes ? MOUNTED : folder),
  hosts: hosts ?? (kubernetes ? 'signalbox-{app}' : '{app}'),
  kubernetes,
  temporal_api_key: api_key_file && readFileSync(api_key_file, 'utf8'),
  authority: ca === undefined ? undefined : { cert_file, key_file },
}
const kept = await writeProduction(asked)
console.log(`${folder} holds the configuration. For the remaining steps, see ${folder}/NEXT.md`)
const open = (['postgres', 'redis', 'nats', 'temporal'] as const).filter((name) => asked[name].includes(TO_FILL))
if (kept.length > 0) console.log(`These settings keep the values of the previous run:\n  ${kept.join('\n  ')}`)
if (open.length > 0)
  console.log(
    `${TO_FILL} stands for the address of ${open.join(', ')}. Pass ${open.map((name) => `--${name}`).join(' ')} and run it again, or edit ${folder}/env.`,
  )
