import { completeLock } from './lock-file.ts'

/** `npm run lock`, after adding or updating packages: completes the lock file for `npm ci` on every platform. */
const added = completeLock()
console.log(added.length === 0 ? 'package-lock.json is complete.' : `Added to package-lock.json:\n${added.join('\n')}`)
