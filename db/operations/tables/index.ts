/**
 * Rows of the operations app (operations.md 1.1, 6.1), a file per subject. Postgres decides: whatever a refusal can
 * depend on is a column here. `operation_control` stands apart from `operations`, because claims share-lock it while
 * record_changes updates `operations` at every step, and neither may wait for the other.
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
