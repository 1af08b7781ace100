import { readFileSync } from 'node:fs'
import { request as plain } from 'node:http'
import { request as secured } from 'node:https'
import { loadAppEnv } from './app-env.ts'
import { APPS } from './apps.ts'

/**
 * The image's HEALTHCHECK: `node apps/platform/run/probe.ts [APP]` asks the app of this container whether its process
 * is alive, and ends with 0 or 1. The other side is this machine, so its certificate is not checked.
 */
const WAIT_MS = 4000
const [named = readFileSync('/proc/1/cmdline', 'utf8')] = process.argv.slice(2)
const app = APPS.find(({ name }) => new RegExp(`(^|[/\0])${name}([/\0]|$)`).test(named))
if (!app) throw new Error(`No Signalbox app is running here: ${named.replaceAll('\0', ' ')}`)
loadAppEnv(process.env.SIGNALBOX_DIR ?? '/data', app.name)
const [variable, usual] = app.internal
const options = { host: '127.0.0.1', port: process.env[variable] ?? usual, path: '/health/live', timeout: WAIT_MS }
const end = (why: string) => {
  console.error(`${app.name}: ${why}`)
  process.exit(1)
}
const asked = process.env.AUTH__TLS__CERT_FILE
  ? secured(
      { ...options, rejectUnauthorized: false },
      (reply) => reply.statusCode === 200 || end(`${reply.statusCode}`),
    )
  : plain(options, (reply) => reply.statusCode === 200 || end(`${reply.statusCode}`))
asked.on('response', (reply) => reply.resume().on('end', () => process.exit()))
asked.on('timeout', () => end(`no answer in ${WAIT_MS / 1000} s`))
asked.on('error', (error) => end(error.message))
asked.end()
