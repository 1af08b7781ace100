export { operation } from './operation/workflow.ts'
