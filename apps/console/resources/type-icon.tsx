import { useQuery } from '@tanstack/react-query'
import { Suspense } from 'react'
import { resourceTypeQuery } from '../queries/resources.ts'
import { lazyPart } from '../ui/lazy.ts'

const Icon = lazyPart(() => import('./icons.tsx'))

/** A type, as its icon and key. The space is reserved before the icon loads. */
export const TypeName = ({ type_key }: { type_key: string }) => {
  const type = useQuery({ ...resourceTypeQuery(type_key), staleTime: Number.POSITIVE_INFINITY })
  return (
    <span className="inline-flex items-center gap-1.5">
      <span className="size-4 shrink-0 text-muted">
        <Suspense fallback={null}>
          {type.isPending ? null : <Icon type_key={type_key} icon={type.data?.icon} />}
        </Suspense>
      </span>
      {type_key}
    </span>
  )
}
