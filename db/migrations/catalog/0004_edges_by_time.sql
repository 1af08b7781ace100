DROP INDEX IF EXISTS "catalog"."relationship_src_from";--> statement-breakpoint
DROP INDEX IF EXISTS "catalog"."relationship_dst_from";