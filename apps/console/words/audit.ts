import { audit, health } from './en/audit.ts'

/** Words of the logs of acts and of health. */
export const tAudit = { audit, health }
