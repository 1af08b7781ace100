import { intervene } from './en/intervene.ts'
import { patch } from './en/patch.ts'

/** Words of changes to a running operation: patches and interventions. */
export const tChange = { patch, intervene, ticket: 'Ticket (optional)' }
