import { artifacts, evidence } from './operations/evidence.ts'

/** Words of the evidence and artifacts of an operation. */
export const tProof = { evidence, artifacts }
