import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { shown } from '../kit/format.ts'
import { meQuery } from '../queries/me.ts'
import { t } from '../words/index.ts'

/** `data-row` marks the link that opens the row of a table. */
type Props = { children?: React.ReactNode; className?: string; 'data-row'?: '' }

type ResourceLinkProps = Props & { id: string; tab?: 'overview' | 'capabilities' }

export const ResourceLink = ({ id, tab = 'overview', children = id, ...rest }: ResourceLinkProps) => (
  <Link to="/resources/$resource_id" params={{ resource_id: id }} search={{ tab }} {...rest}>
    {children}
  </Link>
)

type OperationLinkProps = Props & { id: string; onKeyDown?: React.KeyboardEventHandler }

export const OperationLink = ({ id, children, ...rest }: OperationLinkProps) => (
  <Link to="/operations/$operation_id/graph" params={{ operation_id: id }} {...rest}>
    {children}
  </Link>
)

type NodeLinkProps = Props & { operation_id: string; node_id: string; tab?: 'summary' | 'logs' }

export const NodeLink = ({ operation_id, node_id, tab = 'summary', children = node_id, ...rest }: NodeLinkProps) => (
  <Link to="/operations/$operation_id/nodes/$node_id" params={{ operation_id, node_id }} search={{ tab }} {...rest}>
    {children}
  </Link>
)

type PatchLinkProps = Props & { operation_id: string; patch_id: string; onKeyDown?: React.KeyboardEventHandler }

export const PatchLink = ({ operation_id, patch_id, children = patch_id, ...rest }: PatchLinkProps) => (
  <Link to="/operations/$operation_id/patches/$patch_id" params={{ operation_id, patch_id }} {...rest}>
    {typeof children === 'string' ? shown(children) : children}
  </Link>
)

type GateLinkProps = Props & { operation_id: string; gate_id: string; onKeyDown?: React.KeyboardEventHandler }

export const GateLink = ({ operation_id, gate_id, children = gate_id, ...rest }: GateLinkProps) => (
  <Link to="/operations/$operation_id/gates/$gate_id" params={{ operation_id, gate_id }} {...rest}>
    {children}
  </Link>
)

/** Whether this person may start something. */
export const useMayCreate = (): boolean => useQuery(meQuery()).data?.permissions.includes('intent:create') ?? false

/** The text of an empty list, with the advice to select "New" for people who have it. */
export const useEmptyWords = (empty: string, how: string): string => (useMayCreate() ? `${empty} ${how}` : empty)

/** "New", for people who may start something. */
export const NewLink = () =>
  useMayCreate() ? (
    <Link to="/new" search={{ kind: 'change', type: '', procedure: '', resource: '' }} className="button main">
      {t.nav.create}
    </Link>
  ) : null
