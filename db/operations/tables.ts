/**
 * Rows of the operations app (operations.md 1.1, 6.1), a file per subject. Postgres decides: whatever a refusal can
 * depend on is a column here. `operation_control` stands apart from `operations`, because claims share-lock it while
 * record_changes updates `operations` at every step, and neither may wait for the other.
 */
export * from './tables/catalog.ts'
export * from './tables/commands.ts'
export * from './tables/gates.ts'
export * from './tables/nodes.ts'
export * from './tables/operations.ts'
export * from './tables/plans.ts'
export * from './tables/schema.ts'
export * from './tables/views.ts'
