import { audit, health } from './frame/audit.ts'

/** Words of the audit logs and of health. */
export const tAudit = { audit, health }
