import { intervene } from './operations/intervene.ts'
import { patch } from './operations/patch.ts'

/** Texts for changes to a running operation: patches and interventions. */
export const tChange = { patch, intervene, ticket: 'Ticket (optional)' }
