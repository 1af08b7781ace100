import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { stringify } from 'yaml'
import { withAccount } from './next-steps.ts'

/** Where a pod finds its files. A Secret has no folders, so the names use a dot for each slash. */
export const MOUNTED = '/etc/signalbox'
/** Where the worker finds the Secret with the credentials of its executors. */
const EXECUTORS = '/run/signalbox/executors'
const PREFIX = 'signalbox'

const secret = (name: string, stringData: Record<string, string>) => ({
  ...{ apiVersion: 'v1', kind: 'Secret', type: 'Opaque' },
  metadata: { name: `${PREFIX}-${name}`, labels: { 'app.kubernetes.io/name': 'signalbox' } },
  stringData,
})

/**
 * The Secrets that the chart takes, from the folder that the setup wrote for `MOUNTED`. An app gets its own settings
 * and the files that they name; a setting that needs a folder is refused. The migration gets only the accounts of the database, and a place for the owner's.
 */
export const kubernetesSecrets = (out: string, apps: readonly string[], postgres: string): string => {
  const text = (file: string) => readFileSync(join(out, file), 'utf8')
  const made = apps.flatMap((app) => {
    const settings = parseEnv(text(`env/${app}.env`) + text(`env/${app}.secret.env`)) as Record<string, string>
    const files: Record<string, string> = {}
    const env = Object.entries(settings).map(([name, value]) => [
      name,
      value.replaceAll(/\/etc\/signalbox\/([\w./-]+)/g, (whole, file: string) => {
        if (!existsSync(join(out, file))) return whole
        const is_folder = statSync(join(out, file)).isDirectory()
        if (is_folder && name === 'WORKER__EXECUTORS__SECRETS_DIR') return EXECUTORS
        // The secrets of providers are in a folder beside their file.
        if (is_folder || (name === 'AUTH__PROVIDERS__FILE' && text(file).includes('secret://file/')))
          throw new Error(
            `${name} of ${app} needs a folder, ${whole}, and a Secret has none. Mount it by apps.${app}.mounts of the chart, and name its path there: guides/files.md has the steps.`,
          )
        files[flat(file)] = text(file)
        return `${MOUNTED}/${flat(file)}`
      }),
    ])
    return [secret(`${app}-env`, Object.fromEntries(env)), secret(`${app}-files`, files)]
  })
  const { servers } = JSON.parse(text('keys/secrets.json')) as { servers: { users: Record<string, string> } }
  const owner = new URL(withAccount(postgres, 'TO_FILL', 'TO_FILL'))
  owner.pathname = '/postgres'
  owner.searchParams.set('sslmode', 'verify-full')
  owner.searchParams.set('sslrootcert', `${MOUNTED}/${flat('tls/ca.pem')}`)
  const migrate = secret('migrate', {
    'owner-url': decodeURIComponent(owner.href),
    'secrets.json': JSON.stringify({ servers: { users: servers.users } }),
    [flat('tls/ca.pem')]: text('tls/ca.pem'),
  })
  const prometheus = secret('prometheus', {
    'ca.crt': text('tls/ca.pem'),
    'tls.crt': text('tls/prometheus.pem'),
    'tls.key': text('tls/prometheus.key'),
  })
  return [...made, migrate, prometheus].map((one) => stringify(one, { lineWidth: 0 })).join('---\n')
}

const flat = (file: string): string => file.replaceAll('/', '.')
