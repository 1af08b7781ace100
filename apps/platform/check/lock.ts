import { completeLock } from './lock-file.ts'

/** `npm run lock`, after adding or updating packages: makes the lock file one that `npm ci` takes on every platform. */
const added = completeLock()
console.log(added.length === 0 ? 'package-lock.json is complete.' : `Added to package-lock.json:\n${added.join('\n')}`)
