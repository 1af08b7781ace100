import { runAlone } from './run-folder.ts'

/** `npm run test:chaos`, `test:cluster`, `test:model`, `test:overload`, `test:start`: the main.ts of that folder of tests. */
const [area = ''] = process.argv.splice(2, 1)
process.exitCode = await runAlone(`test/${area}/main.ts`)
