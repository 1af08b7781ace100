import { artifacts, evidence } from './operations/evidence.ts'

/** Texts for the evidence and artifacts of an operation. */
export const tProof = { evidence, artifacts }
