import { cachePath } from '../../apps/platform/servers/cache.ts'
import { onPath } from '../../apps/platform/servers/sources.ts'
import { OPENTOFU } from '../support/tofu.ts'
import { builtByGo, findTool } from './cluster-tools.ts'

/**
 * `npm run test:tofu [-- vitest arguments]`: the agent's tests with OpenTofu, which Go builds from the module proxy once.
 * Later runs of `npm test` on this machine find it too.
 */
const built = builtByGo({
  ...{ module: 'github.com/opentofu/opentofu', program: 'cmd/tofu', version: OPENTOFU },
  flags: '-X github.com/opentofu/opentofu/version.dev=no',
  replacementsOf: (text) =>
    [...text.matchAll(/^(?:replace)?\s+(\S+(?: v\S+)? => \S+ v\S+)$/gm)].map(([, one = '']) => one),
})
const target = cachePath('tofu', OPENTOFU)
process.env.TOFU_PROGRAM = await findTool('tofu', target, [onPath(['tofu'], '1.6.0', ['version']), built(target)])
if (process.argv.length < 3) process.argv.push('test/agent/tofu', 'test/agent/git.sources', 'test/agent/rollback')
await import('./test.ts')
