import { audit, health } from './en/audit.ts'

/** Words of the audit logs and of health. */
export const tAudit = { audit, health }
