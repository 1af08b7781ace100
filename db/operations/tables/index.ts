/**
 * Rows of the operations app (operations.md 1.1, 6.1), one file per subject. Postgres decides: everything that a
 * refusal can depend on is a column here. `operation_control` is separate from `operations`, because claims share-lock
 * it while record_changes updates `operations` at every step, and neither may block the other.
 */
export * from './catalog.ts'
export * from './commands.ts'
export * from './gates.ts'
export * from './nodes.ts'
export * from './notifications.ts'
export * from './operations.ts'
export * from './plans.ts'
export * from './schedules.ts'
export * from './schema.ts'
export * from './views.ts'
