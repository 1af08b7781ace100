import { spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { createCommand } from '../../activities/executors/command/run.ts'
import { checked } from '../../activities/executors/index.ts'
import { loadPolicy } from '../../activities/executors/policy.ts'
import type { ExecutorContext } from '../../activities/executors/types.ts'
import { endStrays, runProcess } from '../../apps/shared/run/process.ts'
import { until } from '../support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'programs-'))
chmodSync(folder, 0o777)
// Programs get their folders here, so that leftovers are seen.
process.env.TMPDIR = folder
const AS_ROOT = process.getuid?.() === 0
const WHO = AS_ROOT ? 'uid: 65534' : ''

let scripts = 0
const script = (text: string): string => {
  scripts += 1
  const path = join(folder, `s${scripts}.sh`)
  writeFileSync(path, `#!/bin/sh\n${text}\n`)
  chmodSync(path, 0o755)
  return path
}
const policyOf = (programs: string) => {
  const file = join(folder, 'policy.yaml')
  writeFileSync(file, `format: signalbox/executor-policy@1\npools: {}\nprograms:\n${programs}\n`)
  return loadPolicy(file)
}
const ANY = 'args: { type: array, items: { type: string } }'

type Run = { more?: Partial<ExecutorContext>; rule?: string; env?: NodeJS.ProcessEnv }
/** Runs a script as the program "p"; the result includes what it logged and what it left behind. */
const run = async (
  text: string,
  values: Record<string, unknown> = {},
  { more = {}, rule = ANY, env = {} }: Run = {},
) => {
  const policy = policyOf(`  p: { path: ${script(text)}, ${rule}${WHO && !rule.includes('uid') ? `, ${WHO}` : ''} }`)
  const lines: { text: string; stream?: string }[] = []
  const artifacts: Parameters<ExecutorContext['artifact']>[0][] = []
  let waits = 0
  const result = await checked(createCommand(policy, env)).run({
    operation_id: 'op',
    node_id: 'n',
    role: 'run',
    generation: 1,
    attempt: 1,
    fence: 7,
    key: 'op:n:1',
    pool: 'default',
    with: { program: 'p', ...values },
    secrets: {},
    timeouts: { run_s: 20 },
    idempotent: false,
    slice_end: Date.now() + 10_000,
    deadline: Date.now() + 20_000,
    signal: new AbortController().signal,
    leave: new AbortController().signal,
    resume: null,
    repeated: false,
    checkpoint: async () => true,
    log: (line, options) => void lines.push({ text: line, ...options }),
    stored: async () => {
      waits += 1
    },
    artifact: (artifact) => void artifacts.push(artifact),
    ...more,
  })
  return { result, lines, artifacts, waits, texts: lines.map((line) => line.text) }
}
const foldersLeft = () => readdirSync(folder).filter((name) => name.startsWith('signalbox-run-'))
const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    // A zombie with a foreign parent counts as gone.
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
const endOf = (pid: number) => until(() => !isRunning(pid), { what: `the end of process ${pid}` })

afterEach(() => expect(foldersLeft()).toEqual([]))

describe('a program', () => {
  it('gets its arguments as a list that no shell reads, after the end of options', async () => {
    const { texts, result } = await run('for a in "$@"; do echo "[$a]"; done', {
      args: ['$(touch /tmp/pwned)', '; rm -rf .', '`id`', '-x', "it's", 7],
    })
    expect(texts).toEqual(['[--]', '[$(touch /tmp/pwned)]', '[; rm -rf .]', '[`id`]', '[-x]', "[it's]", '[7]'])
    expect(result).toEqual({ status: 'succeeded', raw: {} })
  })

  it('takes lists and truths of other nodes as it always did', async () => {
    const args = [true, ...Array(150).fill('x')]
    const { texts, result } = await run('echo "$2" "$#"', {
      args,
      env: null,
      files: null,
      stdin: null,
      timeout_s: null,
    })
    expect([texts, result]).toEqual([['true 152'], { status: 'succeeded', raw: {} }])
  })

  it('gives its outputs from the named file and its files as artifacts', async () => {
    const { result, artifacts } = await run(
      `cat >/dev/null; echo '{"count": 3}' > "$SIGNALBOX_OUTPUTS"; printf 'PEM' > "$SIGNALBOX_ARTIFACTS/c.pem"; printf '\\377\\000' > "$SIGNALBOX_ARTIFACTS/raw.bin"`,
    )
    expect(result).toEqual({ status: 'succeeded', raw: { count: 3 } })
    expect(artifacts).toEqual([
      { name: 'c.pem', kind: 'file', media_type: 'application/x-pem-file', content: Buffer.from('PEM') },
      { name: 'raw.bin', kind: 'file', media_type: 'application/octet-stream', content: Buffer.from([255, 0]) },
    ])
  })

  it('sees only named variables, its own folder and the files given to it', async () => {
    const { texts } = await run(
      'env | sort | cut -d= -f1; pwd; cat note.txt; cat; echo "$TOKEN $REGION $SIGNALBOX_KEY $SIGNALBOX_FENCE"',
      { env: { TOKEN: 't0ken' }, files: { 'note.txt': 'from a file\n' }, stdin: 'from stdin\n' },
      { rule: `${ANY}, env: [TOKEN, REGION]`, env: { REGION: 'eu1', DATABASE_URL: 'postgres://secret' } },
    )
    expect(texts).not.toContain('DATABASE_URL')
    expect(texts).toEqual(expect.arrayContaining(['TOKEN', 'REGION', 'TMPDIR', 'from a file', 'from stdin']))
    expect(texts).toContain('t0ken eu1 op:n:1 7')
    expect(texts.find((line) => line.startsWith('/'))).toMatch(/signalbox-run-[^/]+\/work$/)
  })

  it('has its lines logged by stream, cuts long ones, and accepts no more than the log stores', async () => {
    const { lines, waits } = await run('echo out; echo err >&2; printf "no end"; head -c 100000 /dev/zero | tr "\\0" x')
    expect(lines).toContainEqual({ text: 'out', stream: 'stdout', level: 'info' })
    expect(lines).toContainEqual({ text: 'err', stream: 'stderr', level: 'warn' })
    expect(lines.at(-1)).toMatchObject({ text: expect.stringMatching(/^no end(x{32762})$/), cut: true })
    expect(waits).toBeGreaterThan(0)
  })

  it('has its whole log, however slowly it is stored', { timeout: 20_000 }, async () => {
    let slow = true
    const stored = async () => {
      if (slow) await delay(4000)
      slow = false
    }
    const { texts } = await run(
      'i=0; while [ $i -lt 9000 ]; do i=$((i+1)); echo "line $i"; done',
      {},
      { more: { stored } },
    )
    expect(texts).toHaveLength(9000)
  })

  it('runs as the user that the policy names', async () => {
    const { texts } = await run('id -u')
    expect(texts).toEqual([String(AS_ROOT ? 65534 : process.getuid?.())])
  })

  it('ends as its exit code says', async () => {
    const codes = { exit_codes: { ok: [0, 3], retry: [75] } }
    expect((await run('exit 3', codes)).result).toEqual({ status: 'succeeded', raw: {} })
    expect((await run('exit 75', codes)).result).toMatchObject({ class: 'exit_code', retryable: true })
    expect((await run('exit 1', codes)).result).toMatchObject({
      status: 'failed',
      class: 'exit_code',
      retryable: false,
    })
    expect((await run('kill -KILL $$')).result).toMatchObject({
      status: 'unknown',
      message: 'p was killed by SIGKILL.',
    })
  })
})

describe('a program that does harm', () => {
  it('is stopped at its deadline, with every process that it started', async () => {
    const pids = join(folder, 'pids')
    const { result } = await run(`sleep 300 & echo $! > ${pids}; echo $$ >> ${pids}; wait`, { timeout_s: 1 })
    expect(result).toMatchObject({ status: 'unknown', class: 'timeout' })
    for (const pid of readFileSync(pids, 'utf8').trim().split('\n').map(Number)) await endOf(pid)
  })

  it('is killed if it ignores the signal', { timeout: 30_000 }, async () => {
    const began = Date.now()
    const { result } = await run(`trap '' TERM; while :; do sleep 0.1; done`, { timeout_s: 1 })
    expect(result).toMatchObject({ status: 'unknown', class: 'timeout' })
    expect(Date.now() - began).toBeGreaterThan(10_000)
  })

  it('stops when the operation is stopped by force, and its outcome is unknown', async () => {
    const stop = new AbortController()
    const running = run('echo on; sleep 300', {}, { more: { signal: stop.signal } })
    await delay(300)
    stop.abort()
    expect((await running).result).toMatchObject({ status: 'unknown', class: 'cancelled' })
  })

  it('leaves no process behind that holds its output open', async () => {
    const file = join(folder, 'left')
    const began = Date.now()
    const { result } = await run(`(sleep 60 & echo $! > ${file}) ; exit 0`)
    expect(result).toMatchObject({ status: 'succeeded' })
    expect(Date.now() - began).toBeLessThan(10_000)
    const pid = Number(readFileSync(file, 'utf8'))
    await endOf(pid)
  })

  it('leaves no process behind that has left its group', async () => {
    const file = join(folder, 'strayed')
    const { result } = await run(`setsid sh -c 'echo $$ > ${file}; exec sleep 60' </dev/null >/dev/null 2>&1 & sleep 1`)
    expect(result).toMatchObject({ status: 'succeeded' })
    const pid = Number(readFileSync(file, 'utf8'))
    await endOf(pid)
  })

  it('has ended by itself if it is told to stop after its end, while its output is still open', async () => {
    const stop = new AbortController()
    const mark = 'of-one-that-ended'
    let pid = 0
    const ended = runProcess({
      ...{ path: script('setsid sleep 60 & sleep 1; echo $$'), args: [], cwd: '/', env: {}, stdin: '', mark },
      ...{ left_ms: () => 60_000, limits: { cpu_s: 60, memory_mib: undefined }, signal: stop.signal },
      log: (text) => {
        pid = Number(text)
      },
      stored: async () => {},
    })
    // A process that ended remains until its parent has taken note of it.
    await until(() => pid > 0 && !existsSync(`/proc/${pid}`), { what: 'its end' })
    stop.abort()
    expect(await ended).toEqual({ how: 'ended', code: 0, signal: null })
    endStrays(mark)
  })

  it.each([
    ['', 'exec sleep 300'],
    [', also while it ignores that it is asked to end', 'while :; do sleep 0.1; done'],
  ])('does not outlive the worker that started it, however the worker dies%s', async (asked, rest) => {
    const file = join(folder, `orphan${asked.length}`)
    const mark = `of-a-dying-worker-${asked.length}`
    const path = script(`trap 'echo > ${file}.asked' TERM; setsid sleep 301 & echo $! $$ > ${file}; ${rest}`)
    const worker = join(folder, 'worker.ts')
    const code = new URL('../../apps/shared/run/process.ts', import.meta.url).href
    writeFileSync(
      worker,
      `import { runProcess } from '${code}'
       const stop = new AbortController()
       process.on('SIGUSR2', () => stop.abort())
       await runProcess({ path: '${path}', args: [], cwd: '/', env: {}, stdin: '', left_ms: () => 60_000, limits: { cpu_s: 60, memory_mib: undefined }, mark: '${mark}',
         signal: stop.signal, log: () => {}, stored: async () => {} })`,
    )
    const dying = spawn(process.execPath, [worker], { stdio: 'ignore' })
    const written = () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split(' ').map(Number) : [])
    const pids = await until(() => (written().length === 2 ? written() : undefined), { timeout_ms: 20_000 })
    for (const pid of pids) expect(isRunning(pid)).toBe(true)
    if (asked) {
      dying.kill('SIGUSR2')
      await until(() => existsSync(`${file}.asked`), { what: 'the request to end' })
    }
    dying.kill('SIGKILL')
    for (const pid of pids) await endOf(pid)
  })

  it("cannot pass on other users' files or invalid outputs", async () => {
    const linked = await run(
      'ln -s /etc/passwd "$SIGNALBOX_ARTIFACTS/passwd"; mkfifo "$SIGNALBOX_ARTIFACTS/pipe" 2>/dev/null; :',
    )
    expect(linked.artifacts).toEqual([])
    expect(linked.texts).toContain('The file passwd was not stored: it is not a regular file, or it is too large.')
    for (const text of [
      'ln -s /etc/passwd "$SIGNALBOX_OUTPUTS"',
      'echo "[1]" > "$SIGNALBOX_OUTPUTS"',
      'echo "{" > "$SIGNALBOX_OUTPUTS"',
      '{ printf "{\\"a\\":"; head -c 20000 /dev/zero | tr "\\0" "["; head -c 20000 /dev/zero | tr "\\0" "]"; echo "}"; } > "$SIGNALBOX_OUTPUTS"',
      'head -c 70000 /dev/zero > "$SIGNALBOX_OUTPUTS"',
    ])
      expect((await run(text)).result).toMatchObject({ status: 'failed', class: 'outputs_invalid' })
  })

  it('cannot fill disk or file table beyond its limits', async () => {
    const { texts } = await run('ulimit -f; ulimit -n; ulimit -c; ulimit -t')
    expect(texts).toEqual(['524288', '256', '0', String(20 * availableParallelism() + 1)])
  })
})

it('has no effect if the worker has no place for its folder', async () => {
  process.env.TMPDIR = join(folder, 'missing')
  const { result } = await run('exit 0').finally(() => (process.env.TMPDIR = folder))
  expect(result).toMatchObject({ status: 'failed', class: 'refused', retryable: true })
})

describe('a step that asks for more than the policy allows', () => {
  it('is refused before the program starts', async () => {
    const touched = join(folder, 'touched')
    const begin = `touch ${touched}`
    const strict = 'args: { type: array, items: { type: string, pattern: "^[a-z]+$" }, maxItems: 1 }'
    for (const [values, rule] of [
      [{ args: ['UP'] }, strict],
      [{ args: ['a', 'b'] }, strict],
      [{ args: ['a\nb'] }, ANY],
      [{ args: ['a\0b'] }, ANY],
      [{ args: ['-rf'] }, `${ANY}, end_of_options: false`],
      [{ env: { LD_PRELOAD: '/tmp/x.so' } }, ANY],
      [{ files: { '../escape': 'x' } }, ANY],
      [{ program: 'other' }, ANY],
      [{ program: '/bin/sh' }, ANY],
      [{ stdin: 5 }, ANY],
      [{ stdin: { $from: 'data that looks like a reference' } }, ANY],
      [{ args: 'a' }, ANY],
      [{ exit_codes: { ok: 1 } }, ANY],
      [{ args: ['x'.repeat(140_000)] }, ANY],
    ] as const)
      expect((await run(begin, values, { rule })).result, JSON.stringify(values)).toMatchObject({
        status: 'failed',
        class: 'refused',
      })
    expect(existsSync(touched)).toBe(false)
  })

  it.runIf(AS_ROOT)('never runs a program as root', async () => {
    const policy = policyOf(`  p: { path: /bin/true, ${ANY} }`)
    const context = { with: { program: 'p' } } as unknown as ExecutorContext
    expect(await createCommand(policy, {}).run(context)).toMatchObject({ status: 'failed', class: 'refused' })
  })

  it('is refused if a program does not exist, without an attempt', async () => {
    const policy = policyOf(`  p: { path: /nowhere/p, ${ANY}${WHO && `, ${WHO}`} }`)
    const context = { with: { program: 'p' } } as unknown as ExecutorContext
    expect(await createCommand(policy, {}).run(context)).toMatchObject({ status: 'failed', class: 'refused' })
  })
})

describe('a policy of programs', () => {
  it.each([
    ['a path that is not absolute', 'path: bin/p', /path/],
    ['a broken schema of arguments', 'path: /bin/p, args: { type: text }', /\/programs\/p\/args/],
    ['root', `path: /bin/p, ${ANY}, uid: 0`, /uid/],
    ['an unknown member', `path: /bin/p, ${ANY}, shell: true`, /programs/],
  ])('with %s stops the start', (_what, text, message) => {
    expect(() =>
      policyOf(`  p: { args: true, ${text} }`.replace('args: true, path: /bin/p, args', 'path: /bin/p, args')),
    ).toThrow(message)
  })
})
