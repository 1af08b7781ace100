import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { beginSpan, startTracing } from '../../apps/shared/tracing.ts'
import { createAuthority } from '../support/certificates.ts'

it('an error is logged with its message and its cause, under the names err and error', () => {
  const program = `
    import { createTelemetry } from ${JSON.stringify(new URL('../../apps/shared/telemetry.ts', import.meta.url).href)}
    const { log } = createTelemetry('test', { level: 'info' })
    const failure = new Error('no operation', { cause: new Error('the row is gone') })
    log.warn({ error: failure }, 'Activity failed')
    log.warn({ err: failure }, 'Activity failed')
    log.warn({ error: 'words alone' }, 'Activity failed')
  `
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  const [sdk, ours, words] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(sdk.error).toMatchObject({ type: 'Error', message: 'no operation: the row is gone' })
  expect(ours.err).toEqual(sdk.error)
  expect(words.error).toBe('words alone')
})

it('spans go by TLS to a collector of our authority, with the headers that it asks for', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'signalbox-collector-'))
  const { ca, issue } = createAuthority()
  const asked: unknown[] = []
  const server = createServer(issue('localhost'), (req, res) => {
    asked.push([req.url, req.headers['x-key']])
    req.resume().on('end', () => res.end('{}'))
  }).listen(0)
  await once(server, 'listening')
  const write = (name: string, text: string) => {
    writeFileSync(join(dir, name), text)
    return join(dir, name)
  }
  const env = {
    SIGNALBOX__TELEMETRY__OTLP_URL: `https://localhost:${(server.address() as AddressInfo).port}/`,
    SIGNALBOX__TELEMETRY__OTLP_HEADERS_FILE: write('headers', '{"x-key":"secret"}'),
    SIGNALBOX__TLS__CA_FILE: write('ca.pem', ca),
  }
  try {
    const end = await startTracing('test', env)
    beginSpan('one', undefined)?.end()
    await end()
    expect(asked).toEqual([['/v1/traces', 'secret']])
    const plain = { ...env, SIGNALBOX__TELEMETRY__OTLP_URL: 'http://otel.example.com:4318' }
    await expect(startTracing('test', plain)).rejects.toThrow('OTLP_URL is plain')
    for (const text of ['secret', '"Bearer x"', '[{"x-key":"secret"}]', 'null', '{"x-key":{}}']) {
      write('headers', text)
      await expect(startTracing('test', env), text).rejects.toThrow(
        /OTLP_HEADERS_FILE names a file that is no JSON object of strings: \/\S+$/,
      )
    }
  } finally {
    server.closeAllConnections()
    server.close()
    rmSync(dir, { recursive: true, force: true })
  }
})
