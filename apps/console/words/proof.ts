import { artifacts, evidence } from './en/evidence.ts'

/** Words of what an operation leaves behind: its evidence and artifacts. */
export const tProof = { evidence, artifacts }
