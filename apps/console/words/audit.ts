import { audit, health } from './frame/audit.ts'

/** Texts for the audit logs and health. */
export const tAudit = { audit, health }
