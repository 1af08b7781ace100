import type { AllowedAction, NodeDetail } from '../api/types.ts'

/** What the server offers for this node beside a retry: each is a type of intervention. */
export const interventionsOf = (node: NodeDetail): AllowedAction[] =>
  node.allowed_actions.filter(({ action }) => action !== 'retry')
