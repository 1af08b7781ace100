CREATE TABLE "operations"."pool_waits" (
	"operation_id" uuid NOT NULL,
	"node_id" text NOT NULL,
	"pool" text NOT NULL,
	"places" integer NOT NULL,
	"since" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "pool_waits_operation_id_node_id_pk" PRIMARY KEY("operation_id","node_id")
);
--> statement-breakpoint
CREATE INDEX "pool_waits_pool_since_index" ON "operations"."pool_waits" USING btree ("pool","since");--> statement-breakpoint
CREATE INDEX "node_attempts_at_agents" ON "operations"."node_attempts" USING btree (coalesce("pool", 'default')) WHERE "operations"."node_attempts"."executor" = 'external' and "operations"."node_attempts"."phase" in ('dispatched', 'running');