// `npm pack` of the client: its sources and the contracts that they import, as JavaScript with types, in dist/.
import { execFileSync } from 'node:child_process'
import { copyFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import './make-types.mjs'

const at = (path) => fileURLToPath(new URL(path, import.meta.url))
rmSync(at('dist'), { recursive: true, force: true })
execFileSync(process.execPath, [at('../../node_modules/typescript/bin/tsc'), '-p', at('tsconfig.json')], {
  stdio: 'inherit',
})
copyFileSync(at('schema.d.ts'), at('dist/client/schema.d.ts'))
