import { intervene } from './operations/intervene.ts'
import { patch } from './operations/patch.ts'

/** Words of changes to a running operation: patches and interventions. */
export const tChange = { patch, intervene, ticket: 'Ticket (optional)' }
